//! The report of a short run in a real browser: that it says nothing to the console, asks for nothing, and can be read on a phone, in the dark
//! and on paper.

mod devtools;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use self::devtools::Browser;
use crate::workspace::{root, target};
use crate::{Outcome, peers};

/// Name and function of a check of the page.
type Check = (&'static str, fn(&mut Browser, &str) -> Outcome);

const CHECKS: [Check; 9] = [
    ("loads_without_a_word_to_the_console_or_the_network", loads_silently),
    ("fits_phones_without_scrolling_sideways", fits_phones),
    ("uses_a_desk", uses_a_desk),
    ("answers_before_anything_is_scrolled", answers_first),
    ("can_be_read_in_both_schemes", can_be_read_in_both_schemes),
    ("scheme_can_be_chosen", scheme_can_be_chosen),
    ("figures_answer_the_pointer", figures_answer_the_pointer),
    ("says_the_same_without_scripts", says_the_same_without_scripts),
    ("prints", prints),
];

/// Runs every check; returns how many passed, and the names of those that did not with the reasons.
pub fn check(thalweg: &Path) -> Outcome<(usize, Vec<String>)> {
    let program = peers::browser()?;
    let folder = target().join("browser");
    let report = make_report(thalweg, &folder)?;
    let mut browser = Browser::start(&program, &folder.join("state"))?;
    let (mut passed, mut failed) = (0, Vec::new());
    let url = format!("file://{}", report.display());
    for (name, check) in CHECKS {
        let outcome = reset(&mut browser, &url).and_then(|()| check(&mut browser, &url));
        match outcome {
            Ok(()) => {
                println!("browser::{name} ... ok");
                passed += 1;
            }
            Err(reason) => {
                println!("browser::{name} ... FAILED: {reason}");
                failed.push(name.to_owned());
            }
        }
    }
    take_pictures(&mut browser, &url, &folder)?;
    Ok((passed, failed))
}

/// Runs a short scenario and returns its report.
fn make_report(thalweg: &Path, folder: &Path) -> Outcome<PathBuf> {
    let out = folder.join("run");
    let _ = std::fs::remove_dir_all(&out);
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let scenario = root().join("xtask/src/browser/scenario.toml");
    let mut command = Command::new(thalweg);
    command.args(["lab", "run"]).arg(scenario).arg("--out").arg(&out);
    crate::workspace::output(&mut command)?;
    Ok(out.join("report.html"))
}

/// The page as it is on a desk, nothing left of the check before.
fn reset(browser: &mut Browser, url: &str) -> Outcome {
    browser.call("Emulation.setScriptExecutionDisabled", json!({ "value": false }))?;
    show(browser, 1100, "light")?;
    browser.open(url)?;
    browser.evaluate("localStorage.clear()")?;
    browser.take_events()?;
    browser.open(url)
}

fn show(browser: &mut Browser, width: u32, scheme: &str) -> Outcome {
    let size = json!({ "width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500 });
    browser.call("Emulation.setDeviceMetricsOverride", size)?;
    let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
    browser.call("Emulation.setEmulatedMedia", media).map(drop)
}

fn loads_silently(browser: &mut Browser, url: &str) -> Outcome {
    browser.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")?;
    for event in browser.take_events()? {
        let what = &event["params"];
        match event["method"].as_str().unwrap_or_default() {
            "Runtime.consoleAPICalled" | "Runtime.exceptionThrown" | "Log.entryAdded" => {
                return Err(format!("the console says {what}"));
            }
            "Network.requestWillBeSent" if what["request"]["url"] != url => {
                return Err(format!("it asks for {}", what["request"]["url"]));
            }
            _ => {}
        }
    }
    let seen = browser.evaluate("document.querySelectorAll('section h2').length")?;
    expect(seen.as_u64() > Some(8), || format!("{seen} sections"))?;
    // The policy forbids other sources: a picture from elsewhere is refused before it is requested.
    browser.evaluate("new Promise((done) => { const one = new Image(); one.onerror = () => done(1); one.src = 'http://192.0.2.1/'; })")?;
    let refused = browser
        .take_events()?
        .into_iter()
        .any(|event| event["method"] == "Log.entryAdded" && event.to_string().contains("Content Security Policy"));
    expect(refused, || "the policy lets a picture be loaded".to_owned())
}

fn fits_phones(browser: &mut Browser, _: &str) -> Outcome {
    browser.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")?;
    for phone in [390, 375] {
        show(browser, phone, "light")?;
        let width = browser.evaluate("document.documentElement.scrollWidth")?;
        expect(width == phone, || format!("the page is {width} pixels wide on a phone of {phone}"))?;
    }
    let small = "[...document.querySelectorAll('.many svg text')].filter((one) => 9 > one.getBoundingClientRect().height).length";
    let small = browser.evaluate(small)?;
    expect(small == 0, || format!("{small} texts of the small figures are less than 9 pixels high"))
}

/// A wide window is filled, figures stand side by side, and nothing runs out of it.
fn uses_a_desk(browser: &mut Browser, _: &str) -> Outcome {
    show(browser, 1400, "light")?;
    browser.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")?;
    let width = browser.evaluate("document.documentElement.scrollWidth")?;
    expect(width == 1400, || format!("the page is {width} pixels wide in a window of 1400"))?;
    let used = browser.evaluate("document.querySelector('main').getBoundingClientRect().width")?;
    expect(used.as_f64() > Some(1_200.0), || format!("the page uses {used} of 1400 pixels"))?;
    let beside = "[...document.querySelectorAll('section')].filter((one) => { \
                  const tops = [...one.querySelectorAll(':scope > figure')].map((figure) => figure.offsetTop); \
                  return tops.length > new Set(tops).size; }).length";
    let beside = browser.evaluate(beside)?;
    expect(beside.as_u64() > Some(0), || "no two figures stand side by side".to_owned())
}

/// The cards with the answers stand within the first window of a desk and of a phone.
fn answers_first(browser: &mut Browser, _: &str) -> Outcome {
    for width in [1400, 390] {
        show(browser, width, "light")?;
        let end = browser.evaluate("document.querySelector('.card').getBoundingClientRect().bottom")?;
        expect(end.as_f64() < Some(800.0), || format!("the first answer ends at {end} in a window of {width} by 800"))?;
    }
    Ok(())
}

/// Whether text has enough contrast with its background (WCAG 2.1, 4.5 to 1), in both schemes.
fn can_be_read_in_both_schemes(browser: &mut Browser, _: &str) -> Outcome {
    let mut grounds = Vec::new();
    for scheme in ["light", "dark"] {
        show(browser, 1100, scheme)?;
        let poorest = browser.evaluate(CONTRAST)?;
        expect(poorest[0].as_f64() >= Some(4.5), || format!("{scheme}: contrast {} of {}", poorest[0], poorest[1]))?;
        grounds.push(browser.evaluate("getComputedStyle(document.body).backgroundColor")?);
    }
    expect(grounds[0] != grounds[1], || format!("both schemes have the ground {}", grounds[0]))
}

fn scheme_can_be_chosen(browser: &mut Browser, url: &str) -> Outcome {
    let ground = "getComputedStyle(document.body).backgroundColor";
    let before = browser.evaluate(ground)?;
    browser.evaluate("document.getElementById('scheme').click()")?;
    let after = browser.evaluate(ground)?;
    expect(before != after, || format!("the ground stays {before}"))?;
    browser.open(url)?;
    let remembered = browser.evaluate(ground)?;
    expect(remembered == after, || format!("a choice of {after} is forgotten for {remembered}"))
}

fn figures_answer_the_pointer(browser: &mut Browser, _: &str) -> Outcome {
    let over = "(() => { const curve = document.querySelector('#response-latency .plot:last-of-type g.s .mark, #response-latency g.s .mark'); \
                curve.scrollIntoView({ block: 'center' }); const at = curve.getBoundingClientRect(); return [at.x + 3, at.y + at.height / 2]; })()";
    let at = browser.evaluate(over)?;
    browser.call("Input.dispatchMouseEvent", json!({ "type": "mouseMoved", "x": at[0], "y": at[1] }))?;
    let tip =
        browser.evaluate("document.querySelector('.tip').hidden ? '' : document.querySelector('.tip').textContent")?;
    expect(tip.as_str().is_some_and(|text| text.contains("s")), || format!("the tip says {tip}"))?;
    let toggle = "(() => { const key = document.querySelector('g.key'); key.dispatchEvent(new Event('click')); \
                  return key.closest('svg').querySelectorAll('g.s.off').length; })()";
    let hidden = browser.evaluate(toggle)?;
    expect(hidden.as_u64() > Some(0), || "a click into the legend hides nothing".to_owned())
}

fn says_the_same_without_scripts(browser: &mut Browser, url: &str) -> Outcome {
    let text = "document.querySelector('main').innerText.length";
    let with = browser.evaluate(text)?;
    browser.call("Emulation.setScriptExecutionDisabled", json!({ "value": true }))?;
    browser.open(url)?;
    let without = browser.evaluate(text)?;
    let dead = browser.evaluate("document.getElementById('scheme').hidden")?;
    expect(with == without && dead == true, || format!("{with} letters with scripts, {without} without, button {dead}"))
}

fn prints(browser: &mut Browser, _: &str) -> Outcome {
    show(browser, 1100, "dark")?;
    let pdf = browser.call("Page.printToPDF", json!({ "printBackground": true }))?["data"].clone();
    let bytes = decode(pdf.as_str().unwrap_or_default());
    expect(bytes.starts_with(b"%PDF") && bytes.len() > 20_000, || format!("a PDF of {} bytes", bytes.len()))?;
    let media = json!({ "media": "print", "features": [{ "name": "prefers-color-scheme", "value": "dark" }] });
    browser.call("Emulation.setEmulatedMedia", media)?;
    let ground = browser.evaluate("getComputedStyle(document.body).backgroundColor")?;
    expect(ground == "rgb(255, 255, 255)", || format!("prints on {ground}"))
}

/// Pictures to inspect when a check failed, or before a release.
fn take_pictures(browser: &mut Browser, url: &str, folder: &Path) -> Outcome {
    for (name, width, scheme) in [("light", 1400, "light"), ("dark", 1100, "dark"), ("phone", 390, "light")] {
        reset(browser, url)?;
        show(browser, width, scheme)?;
        let ask = json!({ "format": "png", "captureBeyondViewport": true });
        let ask = whole_page(browser, ask)?;
        let picture = browser.call("Page.captureScreenshot", ask)?["data"].clone();
        let path = folder.join(format!("{name}.png"));
        std::fs::write(&path, decode(picture.as_str().unwrap_or_default()))
            .map_err(|error| format!("{}: {error}", path.display()))?;
        println!("picture: {}", path.display());
    }
    Ok(())
}

fn whole_page(browser: &mut Browser, mut ask: Value) -> Outcome<Value> {
    let size = browser.evaluate("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]")?;
    ask["clip"] = json!({ "x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1 });
    Ok(ask)
}

fn expect(holds: bool, reason: impl Fn() -> String) -> Outcome {
    if holds { Ok(()) } else { Err(reason()) }
}

/// RFC 4648 §4, without a look at the padding.
fn decode(text: &str) -> Vec<u8> {
    let value = |letter: u8| match letter {
        b'A'..=b'Z' => Some(letter - b'A'),
        b'a'..=b'z' => Some(letter - b'a' + 26),
        b'0'..=b'9' => Some(letter - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let values: Vec<u32> = text.bytes().filter_map(value).map(u32::from).collect();
    let group = |group: &[u32]| {
        let bits = (0..4).fold(0, |bits, place| bits << 6 | group.get(place).copied().unwrap_or(0));
        bits.to_be_bytes()[1..group.len()].to_vec()
    };
    values.chunks(4).flat_map(group).collect()
}

/// The poorest contrast of a text of the page with the ground behind it, and that text.
const CONTRAST: &str = "(() => { \
    const numbers = (colour) => colour.match(/[0-9.]+/g).map(Number); \
    const light = (colour) => { const [r, g, b] = numbers(colour).map((part) => part / 255).map((part) => part > 0.03928 ? Math.pow((part + 0.055) / 1.055, 2.4) : part / 12.92); return 0.2126 * r + 0.7152 * g + 0.0722 * b; }; \
    const ground = (one) => { for (let at = one; at; at = at.parentElement) { const colour = getComputedStyle(at).backgroundColor; if (numbers(colour)[3] !== 0) return colour; } return 'rgb(255, 255, 255)'; }; \
    let poorest = [21, '']; \
    for (const one of document.querySelectorAll('h1, h2, p, li, td, th, dt, dd, caption, figcaption, small, summary, a, button, .tick, .label, .row, .legend')) { \
        if (!one.textContent.trim()) continue; \
        const style = getComputedStyle(one); \
        const [front, back] = [light(one.closest('svg') ? style.fill : style.color), light(ground(one))]; \
        const ratio = (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05); \
        if (poorest[0] > ratio) poorest = [ratio, one.textContent.slice(0, 60)]; \
    } \
    return poorest; })()";

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn base64_is_read_as_the_rfc_writes_it() {
        for (text, expect) in [("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm9v", "foo"), ("Zm9vYmFy", "foobar")] {
            assert_eq!(decode(text), expect.as_bytes(), "{text}");
        }
    }
}
