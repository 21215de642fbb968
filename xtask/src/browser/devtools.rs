//! A browser without a window, steered through its DevTools protocol over a pair of pipes.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::workspace::output;
use crate::{Outcome, netns};

/// A running browser with one page; dropping it ends it.
pub struct Browser {
    child: Child,
    folder: PathBuf,
    commands: File,
    messages: Receiver<Value>,
    session: Value,
    last_id: u64,
    /// Events of the page since the last read.
    events: Vec<Value>,
}

impl Browser {
    /// Starts `program` on a host of its own where that can be had; `folder` gets its profile and is emptied first.
    pub fn start(program: &Path, folder: &Path) -> Outcome<Browser> {
        let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder).map_err(failed)?;
        let (to, from) = (folder.join("commands"), folder.join("messages"));
        output(Command::new("mkfifo").args([&to, &from]))?;
        // Open for both directions: opening a pipe for one of them waits for the other end.
        let open = |path: &Path| OpenOptions::new().read(true).write(true).open(path).map_err(failed);
        let (commands, messages) = (open(&to)?, open(&from)?);
        let mut command = Command::new("sh");
        command.args(["-c", "to=$1 from=$2; shift 2; exec \"$@\" 3<\"$to\" 4>\"$from\" 2>/dev/null", "sh"]);
        command.arg(&to).arg(&from).arg(program).args(FLAGS);
        command.arg(format!("--user-data-dir={}", folder.join("profile").display()));
        let mut command = if netns::available().is_ok() { netns::isolated(&command) } else { command };
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        let child = child.map_err(|error| format!("{}: {error}", program.display()))?;
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            for message in BufReader::new(messages).split(0).map_while(Result::ok) {
                let Ok(value) = serde_json::from_slice(&message) else { return };
                if sender.send(value).is_err() {
                    return;
                }
            }
        });
        let folder = folder.to_path_buf();
        let mut browser = Browser {
            child,
            folder,
            commands,
            messages: receiver,
            session: Value::Null,
            last_id: 0,
            events: Vec::new(),
        };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }))?;
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        browser.session = browser.call("Target.attachToTarget", attach)?["sessionId"].clone();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}))?;
        }
        Ok(browser)
    }

    /// Opens a page and waits until it is loaded.
    pub fn open(&mut self, url: &str) -> Outcome {
        self.events.retain(|event| event["method"] != "Page.loadEventFired");
        let answer = self.call("Page.navigate", json!({ "url": url }))?;
        if let Some(reason) = answer["errorText"].as_str() {
            return Err(format!("{url}: {reason}"));
        }
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            let event = self.hear()?;
            self.events.push(event);
        }
        Ok(())
    }

    /// The value of an expression of the page.
    pub fn evaluate(&mut self, expression: &str) -> Outcome<Value> {
        let ask = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.call("Runtime.evaluate", ask)?;
        match answer.get("exceptionDetails") {
            Some(details) => Err(format!("{expression}: {details}")),
            None => Ok(answer["result"]["value"].clone()),
        }
    }

    /// Events of the page since the last call: methods and parameters of the protocol's events.
    pub fn take_events(&mut self) -> Outcome<Vec<Value>> {
        // The answer comes after everything that happened before the question.
        self.evaluate("new Promise((done) => setTimeout(done, 100))")?;
        Ok(std::mem::take(&mut self.events))
    }

    /// Calls a method of the protocol.
    pub fn call(&mut self, method: &str, parameters: Value) -> Outcome<Value> {
        self.last_id += 1;
        let mut message = json!({ "id": self.last_id, "method": method, "params": parameters });
        if !self.session.is_null() {
            message["sessionId"] = self.session.clone();
        }
        let text = format!("{message}\0");
        self.commands.write_all(text.as_bytes()).map_err(|error| format!("{method}: {error}"))?;
        loop {
            let answer = self.hear().map_err(|error| format!("{method}: {error}"))?;
            if answer["id"] != self.last_id {
                self.events.push(answer);
            } else if let Some(error) = answer.get("error") {
                return Err(format!("{method}: {error}"));
            } else {
                return Ok(answer["result"].clone());
            }
        }
    }

    fn hear(&mut self) -> Outcome<Value> {
        self.messages.recv_timeout(PATIENCE).map_err(|_| match self.child.try_wait() {
            Ok(Some(status)) => format!("the browser ended: {status}"),
            _ => format!("the browser said nothing for {} s", PATIENCE.as_secs()),
        })
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.session = Value::Null;
        // It ends its own processes; whatever does not follow is killed.
        if self.call("Browser.close", json!({})).is_err() {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Without a sandbox, since tests run as root; without anything that asks for a network.
const FLAGS: [&str; 11] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
];
const PATIENCE: Duration = Duration::from_secs(60);
