//! The generator against responders that know what they got and gave.

use std::collections::VecDeque;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use thalweg_coap::endpoint::Confirmability;
use thalweg_coap::message::{CoapMessage, Code, MessageId, MessageType, MessageWriter, Token, empty_message};

use super::*;

fn start(answer: impl FnMut(&CoapMessage<'_>, &mut Replies) + Send + 'static) -> Responder {
    Responder::start(None, answer).unwrap()
}

fn plan(responder: &Responder, arrival: ArrivalProcess, duration: Duration) -> LoadPlan {
    LoadPlan { arrival, duration, warm_up: Duration::ZERO, ..LoadPlan::new(responder.address()) }
}

fn measure(plan: &LoadPlan) -> LoadResult {
    run(plan, &AtomicBool::new(false)).unwrap()
}

fn write(reply: (MessageType, Code, MessageId, &Token), payload: &[u8], out: &mut Vec<u8>) {
    let (message_type, code, id, token) = reply;
    MessageWriter::new(out, message_type, code, id, token).payload(payload);
}

#[track_caller]
fn check_sums(counts: &LoadCounts) {
    assert_eq!(counts.offered, counts.sent + counts.unsent, "{counts:?}");
    assert_eq!(counts.sent, counts.served + counts.rejected + counts.wrong + counts.lost, "{counts:?}");
    let first_answers: u64 = counts.codes.values().sum();
    assert_eq!(first_answers, counts.served + counts.rejected + counts.wrong, "{counts:?}");
}

#[test]
fn the_generator_and_a_responder_that_drops_agree_on_sent_served_and_lost() {
    let mut number = 0;
    let responder = start(move |request, replies| {
        number += 1;
        if number % 7 != 0 {
            replies.push(|out| write_content(request, b"hello world", out));
        }
    });
    let mut plan = plan(&responder, ArrivalProcess::Rate(100.0), Duration::from_millis(500));
    (plan.clients, plan.time_limit, plan.window) = (20, Duration::from_secs(2), Some(Duration::from_millis(200)));
    let result = measure(&plan);
    let truth = responder.finish().unwrap();
    check_sums(&result.counts);
    assert_eq!(result.counts.offered, 1000);
    assert_eq!((result.counts.sent, result.counts.served), (truth.received, truth.sent));
    assert_eq!((result.counts.lost, result.counts.late), (1000 / 7, 0));
    assert_eq!((result.counts.duplicates, result.counts.unexpected, truth.malformed), (0, 0, 0));
    let lengths: Vec<f64> = result.windows.iter().map(|window| window.seconds).collect();
    assert_eq!(lengths, [0.2, 0.2, 0.1]);
    let offered: Vec<u64> = result.windows.iter().map(|window| window.offered).collect();
    assert_eq!(offered, [400, 400, 200]);
    let sum = |field: fn(&Window) -> u64| result.windows.iter().map(field).sum::<u64>();
    assert_eq!(sum(|window| window.served), result.counts.served);
    assert_eq!(sum(|window| window.lost), result.counts.lost);
    assert_eq!(Some(sum(|window| window.answered)), result.counts.answered);
}

/// Gives at most so many answers a second, counted from the first request on; the others wait in a queue without bounds.
fn start_slow(pace: f64, is_over: &Arc<AtomicBool>) -> (SocketAddr, JoinHandle<()>) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
    let (address, is_over) = (socket.local_addr().unwrap(), Arc::clone(is_over));
    let work = move || {
        let (mut waiting, mut answered, mut begin) = (VecDeque::new(), 0_u32, None);
        let mut bytes = [0; 2048];
        while !is_over.load(Ordering::Relaxed) {
            if let Ok((len, from)) = socket.recv_from(&mut bytes) {
                let mut answer = Vec::new();
                write_content(&CoapMessage::parse(&bytes[..len]).unwrap(), b"hello world", &mut answer);
                waiting.push_back((from, answer));
                begin.get_or_insert_with(Instant::now);
            }
            let due = begin.map_or(0.0, |begin: Instant| begin.elapsed().as_secs_f64() * pace);
            while f64::from(answered + 1) <= due {
                let Some((to, answer)) = waiting.pop_front() else { break };
                socket.send_to(&answer, to).unwrap();
                answered += 1;
            }
        }
    };
    (address, std::thread::spawn(work))
}

#[test]
fn a_server_whose_queue_grows_is_credited_with_its_pace_and_not_with_what_it_answers_later() {
    let is_over = Arc::new(AtomicBool::new(false));
    let (address, thread) = start_slow(200.0, &is_over);
    let plan = LoadPlan {
        arrival: ArrivalProcess::Rate(400.0),
        duration: Duration::from_millis(500),
        warm_up: Duration::ZERO,
        time_limit: Duration::from_secs(30),
        server_process: Some(std::process::id()),
        ..LoadPlan::new(address)
    };
    let result = measure(&plan);
    is_over.store(true, Ordering::Relaxed);
    thread.join().unwrap();
    let counts = &result.counts;
    check_sums(counts);
    assert!(result.served_per_s > 0.0 && result.served_per_s <= 1.05 * 200.0, "{result:?}");
    assert_eq!((counts.offered, counts.served, counts.lost), (200, 200, 0), "all are answered in time");
    assert_eq!(result.check(), Ok(()), "what a processor second served counts the same answers");
    let mut older = result;
    older.counts.answered = None;
    assert!(older.check().is_err_and(|what| what.starts_with("served_per_s")));
}

#[test]
fn wrong_doubled_foreign_and_refused_answers_are_counted_apart() {
    let told: Arc<[AtomicU64; 6]> = Arc::default();
    let seen = Arc::clone(&told);
    let (mut number, mut last) = (0, (MessageId(0), Token::EMPTY));
    let responder = start(move |request, replies| {
        number += 1;
        let kind = number % 6;
        seen[kind].fetch_add(1, Ordering::Relaxed);
        let head = |code| (MessageType::NonConfirmable, code, request.id, &request.token);
        match kind {
            1 => replies.push(|out| write(head(Code::CONTENT), b"hello", out)),
            2 => replies.push(|out| write(head(Code::SERVICE_UNAVAILABLE), b"", out)),
            3 => {
                replies.push(|out| {
                    write((MessageType::NonConfirmable, Code::CONTENT, last.0, &last.1), b"hello world", out);
                });
                replies.push(|out| write_content(request, b"hello world", out));
            }
            4 => {
                let foreign = Token::from_u64(request.token.to_u64().unwrap().wrapping_add(1_000_000));
                replies.push(|out| {
                    write((MessageType::NonConfirmable, Code::CONTENT, request.id, &foreign), b"hello world", out);
                });
                replies.push(|out| write_content(request, b"hello world", out));
            }
            5 => {
                replies.push(|out| out.extend_from_slice(b"no CoAP"));
                replies.push(|out| write_content(request, b"hello world", out));
            }
            _ => replies.push(|out| write_content(request, b"hello world", out)),
        }
        last = (request.id, request.token);
    });
    let plan = plan(&responder, ArrivalProcess::Closed(4), Duration::from_millis(300));
    let result = measure(&plan);
    responder.finish().unwrap();
    let told = told.each_ref().map(|count| count.load(Ordering::Relaxed));
    assert!(told.iter().all(|count| *count > 10), "{told:?}");
    let counts = &result.counts;
    check_sums(counts);
    assert_eq!(counts.served, told[0] + told[3] + told[4] + told[5]);
    assert_eq!((counts.wrong, counts.rejected, counts.lost), (told[1], told[2], 0));
    assert_eq!((counts.duplicates, counts.unexpected), (told[3], told[4] + told[5]));
    assert_eq!(counts.codes["5.03"], told[2]);
}

#[test]
fn confirmable_requests_are_repeated_acknowledged_and_reset() {
    let acknowledged = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&acknowledged);
    let mut tokens: Vec<Token> = Vec::new();
    let responder = start(move |message, replies| {
        if message.code == Code::EMPTY {
            return seen.lock().unwrap().push((message.message_type, message.id));
        }
        let place = tokens.iter().position(|token| *token == message.token);
        let number = place.unwrap_or(tokens.len());
        if place.is_none() {
            tokens.push(message.token);
        }
        match number % 4 {
            // Lost once.
            0 if place.is_none() => {}
            // By itself, in a message that has to be acknowledged.
            1 => {
                replies.push(|out| out.extend(empty_message(MessageType::Acknowledgement, message.id)));
                let id = MessageId(number as u16);
                replies.push(|out| {
                    write((MessageType::Confirmable, Code::CONTENT, id, &message.token), b"hello world", out);
                });
            }
            2 => replies.push(|out| out.extend(empty_message(MessageType::Reset, message.id))),
            _ => replies.push(|out| write_content(message, b"hello world", out)),
        }
    });
    let mut plan = plan(&responder, ArrivalProcess::Rate(80.0), Duration::from_millis(200));
    (plan.request.delivery, plan.time_limit) = (Confirmability::Confirmable, Duration::from_secs(20));
    let result = measure(&plan);
    responder.finish().unwrap();
    let counts = &result.counts;
    check_sums(counts);
    assert_eq!((counts.sent, counts.served, counts.rejected, counts.lost), (16, 12, 4, 0));
    assert_eq!((counts.repeated, counts.codes["RST"], counts.unexpected), (4, 4, 0));
    let acknowledged = acknowledged.lock().unwrap();
    assert_eq!(*acknowledged, [1, 5, 9, 13].map(|id| (MessageType::Acknowledgement, MessageId(id))));
}

#[test]
fn a_flood_is_sent_beside_the_clients_and_not_counted_among_them() {
    let responder = start(|request, replies| replies.push(|out| write_content(request, b"hello world", out)));
    let mut plan = plan(&responder, ArrivalProcess::Rate(100.0), Duration::from_millis(500));
    plan.flood = Some(Flood { ports: 300, rate: 1000.0 });
    let result = measure(&plan);
    let truth = responder.finish().unwrap();
    assert_eq!((result.counts.served, result.counts.flood), (50, 500));
    assert_eq!(truth.received, 550);
}

#[test]
fn a_result_is_read_back_from_its_json_under_its_schema() {
    let responder = start(|request, replies| replies.push(|out| write_content(request, b"hello world", out)));
    let mut plan = plan(&responder, ArrivalProcess::Closed(2), Duration::from_millis(100));
    (plan.server_process, plan.window) = (Some(std::process::id()), Some(Duration::from_millis(50)));
    let mut result = measure(&plan);
    result.generator_capacity =
        Some(capacity(&plan, Duration::from_millis(100), None, &AtomicBool::new(false)).unwrap());
    responder.finish().unwrap();
    let value = serde_json::to_value(&result).unwrap();
    assert_eq!(value["schema"], "thalweg.coap-load/1");
    for key in ["offered_per_s", "served_per_s", "counts", "latency", "windows", "generator"] {
        assert!(!value[key].is_null(), "{key} is missing in {value}");
    }
    assert!(result.served_per_s > 0.0 && result.server.is_some(), "{value}");
    assert_eq!(serde_json::from_value::<LoadResult>(value).unwrap(), result);
}

#[test]
fn impossible_plans_and_silent_servers_are_refused_in_words() {
    let refusal = |change: fn(&mut LoadPlan)| {
        let mut plan = LoadPlan::new(([127, 0, 0, 1], 9).into());
        plan.time_limit = Duration::from_millis(50);
        change(&mut plan);
        run(&plan, &AtomicBool::new(false)).err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert!(refusal(|plan| plan.clients = 0).contains("clients"));
    assert!(refusal(|plan| plan.arrival = ArrivalProcess::Closed(0)).contains("outstanding"));
    assert!(refusal(|plan| plan.arrival = ArrivalProcess::Phases(Vec::new())).contains("impossible"));
    assert!(refusal(|plan| plan.request.bytes = Some(5)).contains("20"));
    assert!(refusal(|plan| plan.window = Some(Duration::from_micros(1))).contains("windows"));
    let silent = start(|_, _| {});
    let mut plan = LoadPlan { time_limit: Duration::from_millis(50), ..LoadPlan::new(silent.address()) };
    assert!(check_answer(&plan).unwrap_err().to_string().contains("nothing was heard"));
    silent.finish().unwrap();
    let other = start(|request, replies| replies.push(|out| write_content(request, b"hi", out)));
    plan.target = other.address();
    plan.time_limit = Duration::from_secs(5);
    let refusal = check_answer(&plan).unwrap_err().to_string();
    assert!(refusal.contains("\"hi\" where 2.05 with \"hello world\" is expected"), "{refusal}");
    other.finish().unwrap();
}
