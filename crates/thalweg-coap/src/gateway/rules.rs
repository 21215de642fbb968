//! What services of the file do.

use std::time::Duration;

use super::plan::{ServicePlan, ServiceRule};
use crate::device::{Unit, Value};
use crate::service::{PublishedResource, ServiceStop, Things};

/// Runs a service until it shall stop.
pub(super) fn run(plan: &ServicePlan, things: &Things, stop: &ServiceStop) {
    let things = things.clone().with_patience(INPUT_PATIENCE);
    match plan.rule {
        ServiceRule::Mean => publish(plan, &things, stop, |values| values.iter().sum::<f64>() / values.len() as f64),
        ServiceRule::Least => {
            publish(plan, &things, stop, |values| values.iter().copied().fold(f64::INFINITY, f64::min))
        }
        ServiceRule::Greatest => {
            publish(plan, &things, stop, |values| values.iter().copied().fold(f64::NEG_INFINITY, f64::max));
        }
        ServiceRule::Copy => copy(plan, &things, stop),
        ServiceRule::Switch { above, below } => switch(plan, &things, stop, (above, below)),
    }
}

/// Publishes what `reduce` makes of the inputs that answer; there is at least one.
fn publish(plan: &ServicePlan, things: &Things, stop: &ServiceStop, reduce: impl Fn(&[f64]) -> f64) {
    let mut published: Option<PublishedResource> = None;
    loop {
        let readings: Vec<(Value, String)> = plan.inputs.iter().filter_map(|input| things.value(input).ok()).collect();
        let values: Vec<f64> = readings.iter().filter_map(|(value, _)| number(value)).collect();
        if !values.is_empty() {
            if published.is_none() {
                let unit = readings.first().and_then(|(_, unit)| Unit::new(unit).ok()).unwrap_or(Unit::NONE);
                let max_age = plan.period.max(MAX_AGE_MIN);
                match things.publish(&plan.output, "", unit, max_age) {
                    Ok(resource) => published = Some(resource),
                    Err(error) => tracing::warn!("the service {} publishes nothing: {error}", plan.name),
                }
            }
            if let Some(resource) = &published {
                resource.push(Value::Real(reduce(&values)));
            }
        }
        if stop.wait(plan.period) {
            return;
        }
    }
}

/// Writes each new value of the input to the output.
fn copy(plan: &ServicePlan, things: &Things, stop: &ServiceStop) {
    let Some(input) = plan.inputs.first() else { return };
    let mut written = None;
    loop {
        if let Ok((value, _)) = things.value(input)
            && written.as_ref() != Some(&value)
        {
            match things.set(&plan.output, &value) {
                Ok(()) => written = Some(value),
                Err(error) => tracing::warn!("the service {} cannot write {}: {error}", plan.name, plan.output),
            }
        }
        if stop.wait(plan.period) {
            return;
        }
    }
}

/// Drives the output on and off.
fn switch(plan: &ServicePlan, things: &Things, stop: &ServiceStop, (above, below): (f64, f64)) {
    let Some(input) = plan.inputs.first() else { return };
    let mut state = None;
    loop {
        if let Some(value) = things.value(input).ok().and_then(|(value, _)| number(&value)) {
            let wanted = if value > above { Some(true) } else { (value < below).then_some(false) };
            if let Some(on) = wanted.filter(|on| state != Some(*on)) {
                match things.set(&plan.output, &Value::Boolean(on)) {
                    Ok(()) => state = Some(on),
                    Err(error) => tracing::warn!("the service {} cannot drive {}: {error}", plan.name, plan.output),
                }
            }
        }
        if stop.wait(plan.period) {
            return;
        }
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Real(number) => Some(*number),
        Value::Integer(number) => Some(*number as f64),
        Value::Boolean(truth) => Some(f64::from(u8::from(*truth))),
        Value::Text(_) | Value::Bytes(_) => None,
    }
}

/// A silent input holds a service up for this long, and its end as well.
const INPUT_PATIENCE: Duration = Duration::from_secs(5);
/// Clients may keep what is published for a second at least.
const MAX_AGE_MIN: Duration = Duration::from_secs(1);
