//! Makes a crashing body smaller while it breaks the same promise, and tells what happens to it.
//!
//! usage: shrink FORMAT FILE

use std::panic::{self, AssertUnwindSafe};
use std::sync::Mutex;

use fanfold_core::{Session, print_entries, print_view};
use fanfold_fuzz::body;
use fanfold_fuzz::choice::choice;
use fanfold_wire::{Change, Conversation, Format};
// The crates are built as for the fuzzer, which counts the branches taken.
use libfuzzer_sys as _;
use serde_json::Value;

static LAST: Mutex<Option<(String, String)>> = Mutex::new(None);

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (Some(format), Some(file)) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: shrink FORMAT FILE");
        return;
    };
    let format: Format = format.parse().expect("a format");
    let data = std::fs::read(&file).expect("a file");
    panic::set_hook(Box::new(|info| {
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        *LAST.lock().expect("a lock") = Some((place, info.to_string()));
    }));
    let Some((place, _)) = fault(&data, format) else {
        println!("nothing is wrong with it");
        tell(&data, format);
        return;
    };
    let is_same = |data: &[u8]| fault(data, format).is_some_and(|(other, _)| other == place);
    let data = shrunk(data, is_same);
    std::fs::write(format!("{file}.min"), &data).expect("a file");
    let (_, words) = fault(&data, format).expect("it still breaks");
    println!("{}\n{}", String::from_utf8_lossy(&data[1..]), words);
    tell(&data, format);
}

fn fault(data: &[u8], format: Format) -> Option<(String, String)> {
    *LAST.lock().expect("a lock") = None;
    let told = panic::catch_unwind(AssertUnwindSafe(|| body::check(data, format)));
    told.err().and_then(|_| LAST.lock().expect("a lock").take())
}

/// What is folded, and what is behind each handle.
fn tell(data: &[u8], format: Format) {
    let choice = choice(data[0]);
    let text = std::str::from_utf8(&data[1..]).expect("text");
    let Ok((conversation, changes)) = Conversation::decode(text, Some(format)) else {
        println!("it does not decode");
        return;
    };
    println!("byte {}: {} in {:?} by {}", data[0], choice.policy.name, choice.budget, choice.counter.name());
    let mut session = Session::new(choice.policy.clone(), choice.budget, choice.counter);
    if let Some(tools) = conversation.tools() {
        session.set_tools(choice.counter.count(tools));
    }
    for change in changes {
        match change {
            Change::Append(entry) => drop(session.append(entry)),
            Change::Answer(call, outcome) => drop(session.answer(call, outcome)),
        }
    }
    println!("--- transcript\n{}", print_entries(session.transcript().entries()));
    for repair in conversation.repairs() {
        println!("repair: {repair}");
    }
    match session.view() {
        Err(refusal) => println!("--- no view: {refusal}"),
        Ok(view) => {
            let view = view.clone();
            println!("--- view\n{}", print_view(session.transcript(), &view));
            println!("{:?}", view.items);
            for handle in &view.handles {
                println!("{handle}: {:?}", session.ledger().original(*handle));
            }
            println!("--- encoded\n{}", conversation.encode(session.transcript(), &view));
        }
    }
}

/// Takes away nodes, then halves of texts, as long as something can go.
fn shrunk(mut data: Vec<u8>, is_same: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let first = data[0];
    let with = |value: &Value| [vec![first], serde_json::to_vec(value).expect("JSON")].concat();
    let Ok(mut value) = serde_json::from_slice::<Value>(&data[1..]) else { return data };
    if !is_same(&with(&value)) {
        return data;
    }
    loop {
        let mut is_smaller = false;
        let mut paths = Vec::new();
        collect(&value, String::new(), &mut paths);
        for path in paths.iter().rev() {
            for way in 0..5 {
                let mut next = value.clone();
                if !cut(&mut next, path, way) || with(&next).len() >= with(&value).len() {
                    continue;
                }
                if is_same(&with(&next)) {
                    value = next;
                    is_smaller = true;
                    break;
                }
            }
        }
        if !is_smaller {
            break;
        }
    }
    data = with(&value);
    data
}

fn collect(value: &Value, path: String, paths: &mut Vec<String>) {
    paths.push(path.clone());
    match value {
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(i, item)| collect(item, format!("{path}/{i}"), paths));
        }
        Value::Object(fields) => fields.iter().for_each(|(key, field)| {
            collect(field, format!("{path}/{}", key.replace('~', "~0").replace('/', "~1")), paths);
        }),
        _ => {}
    }
}

fn cut(root: &mut Value, path: &str, way: usize) -> bool {
    if way == 0 {
        let Some((parent, key)) = path.rsplit_once('/') else { return false };
        let key = key.replace("~1", "/").replace("~0", "~");
        return match root.pointer_mut(parent) {
            Some(Value::Array(items)) => key.parse().is_ok_and(|at: usize| {
                at < items.len() && {
                    items.remove(at);
                    true
                }
            }),
            Some(Value::Object(fields)) => fields.shift_remove(&key).is_some(),
            _ => false,
        };
    }
    let Some(Value::String(text)) = root.pointer_mut(path) else { return false };
    let half = text.floor_char_boundary(text.len() / 2);
    let tenth = text.floor_char_boundary(text.len() / 10);
    *text = match way {
        1 => String::new(),
        2 => text[half..].to_owned(),
        3 => text[..half].to_owned(),
        _ => text.chars().skip(tenth.max(1)).collect(),
    };
    true
}
