//! Static probes (USDT) of provider `thalweg` at the points of a sample's way.
//!
//! `bpftrace -e 'usdt:./program:thalweg:send_enter { printf("%lx %ld\n", arg0, arg1); }'` prints the writer's entity id and the number of
//! each traced sample; `readelf -n` lists the probes.

use thalweg_base::point::Point;

/// Fires the probe of `point` with the writer's entity id and the sample's number. One NOP while no tracer is attached.
pub fn fire(point: Point, writer: u32, sequence: i64) {
    crate::sys::probes::fire(point, writer, sequence);
}
