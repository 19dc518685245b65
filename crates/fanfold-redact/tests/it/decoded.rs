//! Secrets behind colours, escapes and prefixes of lines, and the text around them.

use fanfold_redact::redact;

/// A key of the format of GitHub, which exists only at run time.
fn github_key() -> String {
    format!("{}_{}", "ghp", "u8Jz3Kq9Lm2P".repeat(3))
}

/// Lines of base64 as in a private key.
fn key_lines(n: usize) -> Vec<String> {
    let random = |i: usize| (i * i * 31 + i * 17 + 7) % 62;
    let alphabet: Vec<char> = ('A'..='Z').chain('a'..='z').chain('0'..='9').collect();
    (0..n).map(|line| (0..64).map(|i| alphabet[random(line * 64 + i)]).collect()).collect()
}

/// A private key with a prefix before each line.
fn private_key(prefix: impl Fn(usize) -> String) -> String {
    let mark = |which: &str| format!("-----{which} RSA PRIVATE {}-----", "KEY");
    let lines = [vec![mark("BEGIN")], key_lines(12), vec![mark("END")]].concat();
    lines.iter().enumerate().map(|(n, line)| format!("{}{line}\n", prefix(n + 1))).collect()
}

fn check_masked(text: &str, secret: &str) {
    assert!(text.contains(secret), "{text}");
    assert!(!redact(text).contains(secret), "{text} -> {}", redact(text));
}

fn check_redacted(text: &str, expected: &str) {
    assert_eq!(redact(text), expected, "from {text}");
}

#[test]
fn a_colour_code_does_not_hide_a_key() {
    let key = github_key();
    let masked = "[redacted: github token]";
    for (before, after) in [
        ("token \u{1b}[32m", "\u{1b}[0m done"),
        ("conf:\u{1b}[01;31m\u{1b}[K", "\u{1b}[m\u{1b}[K"),
        ("read\u{1b}[0m\u{1b}[36m", "\u{1b}[0m"),
        ("\u{9b}32m", ""),
        ("\u{1b}]8;;https://acme.dev/a\u{1b}\\", "\u{1b}]8;;\u{1b}\\"),
        ("\u{1b}]0;title\u{7}", "\u{7}\u{7}"),
        ("x\u{8}\u{200b}", "\u{202e}"),
        ("\\u001b[32m", "\\u001b[0m"),
        ("\\x1b[32m", "\\x1b[0m"),
        ("\\033[32m", "\\e[0m"),
        ("{\"out\":\"{\\\"line\\\":\\\"\\\\u001b[32m", "\\\\u001b[0m\\\"}\"}"),
    ] {
        check_redacted(&format!("{before}{key}{after}"), &format!("{before}{masked}{after}"));
    }
}

#[test]
fn a_colour_within_a_key_or_its_name_does_not_hide_it() {
    let key = github_key();
    let coloured = format!("{}\u{1b}[m\u{1b}[K{}", &key[..4], &key[4..]);
    check_redacted(&format!("at \u{1b}[31m{coloured}!"), "at \u{1b}[31m[redacted: github token]!");
    check_redacted(
        "\u{1b}[36mpassword\u{1b}[0m: \u{1b}[33mkestrel-42!x\u{1b}[0m\nport: 80",
        "\u{1b}[36mpassword\u{1b}[0m: \u{1b}[33m[redacted: password]\u{1b}[0m\nport: 80",
    );
    let overstruck: String = key.chars().map(|c| format!("{c}\u{8}{c}")).collect();
    assert!(redact(&overstruck).starts_with("g\u{8}[redacted"), "{}", redact(&overstruck));
}

#[test]
fn a_key_inside_a_control_sequence_is_masked() {
    let key = github_key();
    let link = format!("\u{1b}]8;;https://acme.dev/?t={key}\u{7}see\u{1b}]8;;\u{7}");
    check_redacted(&link, "\u{1b}]8;;https://acme.dev/?t=[redacted: github token]\u{7}see\u{1b}]8;;\u{7}");
}

#[test]
fn an_escape_before_a_key_does_not_hide_it() {
    let key = github_key();
    let masked = "[redacted: github token]";
    for before in [
        "\\u5bc6\\u7801",
        "\\u2192",
        "\\ud83d\\udd11",
        "\\n",
        "\\t\\u00e9",
        "\\xe9",
        "\\345\\257\\206",
        "\\u{1f511}",
    ] {
        let arguments = |key: &str| format!("{{\"command\": \"echo {before}{key} | cat\\u002e\"}}");
        check_redacted(&arguments(&key), &arguments(masked));
        let nested =
            |key: &str| format!("{{\"arguments\": \"{{\\\"command\\\": \\\"\\{before}{key}\\\"}}\"}}");
        check_redacted(&nested(&key), &nested(masked));
    }
    let escaped: String = key.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect();
    check_redacted(&format!("{{\"key\": \"{escaped}\"}}"), &format!("{{\"key\": \"{masked}\"}}"));
}

#[test]
fn a_password_with_escapes_is_masked_whole() {
    check_masked(r#"{"command":"export DB_PASSWORD=gr\u00f6\u00dfe#7Lm2pZ && make"}"#, "7Lm2pZ");
    check_masked(r#"{"text":"password = \"aB3\\\"kQ9x7Lm2pZ\""}"#, "kQ9x7Lm2pZ");
    check_redacted(
        r#"{"command":"DB_PASSWORD=\u001b[32mkestrel-42!x\u001b[0m make"}"#,
        r#"{"command":"DB_PASSWORD=\u001b[32m[redacted: password]\u001b[0m make"}"#,
    );
    check_redacted(
        r#"{"text":"{\"password\": \"\\u001b[32mkestrel-42!x\\u001b[0m\"}"}"#,
        r#"{"text":"{\"password\": \"\\u001b[32m[redacted: password]\\u001b[0m\"}"}"#,
    );
}

#[test]
fn text_without_secrets_stays_byte_for_byte() {
    for text in [
        "\u{1b}[32mok\u{1b}[0m 12 passed\u{8}\u{8} in C:\\users\\new\\token.rs \\u12 \\ud83d \\x1",
        "{\"command\":\"printf '\\\\u001b[1m%s\\\\n' \\u5bc6\\u7801 \\\\\\\\ \\\"a\\\"\"}",
        "\u{1b}]8;;unterminated\nnext \u{1b}[ \u{1b}",
        "\\",
        "\u{feff}\u{200b}",
    ] {
        check_redacted(text, text);
    }
}

#[test]
fn a_private_key_in_the_output_of_grep_is_masked() {
    let last = key_lines(12).pop().unwrap();
    let prefixes: [fn(usize) -> String; 11] = [
        |n| format!("conf/key.pem:{n}:"),
        |_| "conf/key.pem:".to_owned(),
        |n| format!("conf/key.pem{0}{n}{0}", if n == 1 { ":" } else { "-" }),
        |n| format!("{n}{}", if n == 1 { ":" } else { "-" }),
        |n| {
            format!(
                "\u{1b}[35mconf/key.pem\u{1b}[m\u{1b}[36m:\u{1b}[m\u{1b}[32m{n}\u{1b}[m\u{1b}[36m:\u{1b}[m"
            )
        },
        |n| format!("{:>6}\t", n + 95),
        |n| format!("{:>6}\u{2192}", n + 95),
        |_| "+".to_owned(),
        |_| "-".to_owned(),
        |_| "> > ".to_owned(),
        |n| format!("2026-03-01T10:11:{n:02}Z app-1  | "),
    ];
    for prefix in prefixes {
        let text = format!("searched\n{}and so on", private_key(prefix));
        for encoded in [text.clone(), text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")] {
            check_masked(&encoded, &last);
            let clean = redact(&encoded);
            let is_kept = clean.starts_with("searched") && clean.ends_with("and so on");
            assert!(is_kept && clean.matches("[redacted").count() == 1, "{clean}");
        }
    }
}

#[test]
fn a_private_key_without_its_first_lines_is_masked() {
    let text = private_key(|n| format!("key.pem:{n}:"));
    let tail: String = text.lines().skip(7).map(|line| format!("{line}\n")).collect();
    let clean = redact(&tail);
    assert!(clean.starts_with("key.pem:8:[redacted: private key]-----END"), "{clean}");
}

#[test]
fn a_private_key_on_one_line_or_in_code_is_masked() {
    let last = key_lines(12).pop().unwrap();
    check_masked(&private_key(|_| String::new()).replace('\n', " "), &last);
    let code: String =
        private_key(|_| String::new()).lines().map(|line| format!("    \"{line}\\n\"\n")).collect();
    check_masked(&code, &last);
}

#[test]
fn names_of_passed_tests_stay() {
    for text in [
        "--- PASS: TestX/sub_case (0.00s)",
        "    --- PASS: TestHashWorktreeID/simple_name_2 (0.01s)",
        "=== RUN   TestX\n--- PASS: TestRemove_Hook12\nPASS\nok  \tacme.dev/app\t0.4s",
        "PASS: src/foo_test.go",
        "PASS: gcc.dg/foo.c (test for excess errors)",
        "XPASS: gcc.dg/torture/pr12345-1.c   -O2  execution test",
        "KPASS: gdb.base/foo.exp: print x (PRMS: gdb/1234)",
        "PASS: t0001-init.sh",
        "PASS: test1.sh 3 - some words here",
        "PASS: Dwarf_Line42",
        "pass: some words here",
        "// Second pass: nest task checkpoints under their parent",
        "Examples that would pass: `user.Save()`",
        "{\"Output\":\"--- PASS: TestX/sub_case (0.00s)\\n\"}",
        "\u{1b}[32m--- PASS: TestX/sub_case\u{1b}[0m (0.00s)",
        "# PASS:  12\n# XPASS: 0",
        "field_order = [\"old_password\", \"new_password1\", \"new_password2\"]",
        "password2 = self.cleaned_data.get(\"password2\")",
    ] {
        check_redacted(text, text);
    }
    for text in [
        "pass: kestrel#42x",
        "user: ada\npass: kestrel42\n",
        "{\"pass\": \"kestrel-42\"}",
        "?pass=kestrel_42",
    ] {
        check_masked(text, "kestrel");
    }
}

#[test]
fn discord_tokens_of_every_id_are_masked() {
    let encode = |id: &str| -> String {
        let alphabet: Vec<char> = ('A'..='Z').chain('a'..='z').chain('0'..='9').chain(['-', '_']).collect();
        let bits: String = id.bytes().map(|byte| format!("{byte:08b}")).collect();
        let sextets = bits.as_bytes().chunks(6).map(|six| format!("{:0<6}", String::from_utf8_lossy(six)));
        sextets.map(|six| alphabet[usize::from_str_radix(&six, 2).unwrap()]).collect()
    };
    for start in 10..100 {
        let token =
            format!("{}.G{}.{}", encode(&format!("{start}0485839201746283")), "a1-Bc", "x9_Yz4Qw7".repeat(4));
        check_masked(&format!("login({token})"), &token);
    }
}

#[test]
fn passwords_of_letters_are_masked() {
    for text in [
        "DB_PASSWORD=FRioTUKMhdIjJG",
        "PGPASSWORD=FRioTUKMhdIjJG psql -h db",
        "password=\"FRioTUKMhdIjJG\"",
        "'password': 'FRioTUKMhdIjJG',",
        "password: FRioTUKMhdIjJG",
        "host=db user=app password=FRioTUKMhdIjJG dbname=app",
        "acme login --password FRioTUKMhdIjJG",
    ] {
        check_masked(text, "FRioTUKMhdIjJG");
    }
    let token = format!("{}_{}", "hf", "WmfcjfuvrmkasulNtykbwkjewcnltbgVmr");
    check_masked(&format!("Use `{token}` for staging"), &token);
    for text in [
        "password = \"newPasswordField\"",
        "PASSWORD=passwordFromVault",
        "password: getPassword,",
        "self.password = userInput",
        "password = \"PasswordResetToken\"",
    ] {
        check_redacted(text, text);
    }
}

#[test]
fn passwords_in_sentences_are_masked() {
    for (text, secret) in [
        ("The password is guitar2!", "guitar2"),
        ("the password is kestrel2", "kestrel2"),
        ("the password is Tr0ub4dor&3, please keep it", "Tr0ub4dor&3"),
        ("The password for the staging server is kestrel42.", "kestrel42"),
        ("My root password was Falcon_99 before", "Falcon_99"),
        ("log in as deploy with password kestrel#x", "kestrel#x"),
        ("I set the password to FRioTUKMhdIjJG", "FRioTUKMhdIjJG"),
        ("{\"text\":\"The password is copper winter meadow monkey\"}", "copper winter meadow monkey"),
    ] {
        check_masked(text, secret);
    }
    for text in [
        "The password is wrong!",
        "The password is too short: it must have 8-16 characters.",
        "the password is base64-encoded",
        "the password is 16chars long",
        "The password is SHA256 hashed, and the token is JWT.",
        "the password is user's own",
        "The password was sent to ada@acme.dev yesterday.",
        "The password for this account is required.",
        "The password is stored using bcrypt without salt",
        "with password authentication and/or keys",
        "set the password to something else",
    ] {
        check_redacted(text, text);
    }
}

#[test]
fn credentials_in_nested_json_are_masked() {
    let escape = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let auth = "ZGVwbG95Omtlc3RyZWw0MkxtMnBaOXg3";
    let docker = format!("{{\"auths\":{{\"registry.acme.dev\":{{\"auth\":\"{auth}\"}}}}}}");
    let last = key_lines(12).pop().unwrap();
    let key = private_key(|_| String::new()).replace('\n', "\\n");
    let google = format!("{{\n  \"private_key\": \"{key}\",\n  \"client_email\": \"ci@acme.dev\"\n}}");
    for (text, secret) in [(docker, auth), (google, last.as_str())] {
        let mut nested = text;
        for _ in 0..4 {
            check_masked(&nested, secret);
            nested = format!("{{\"content\":\"{}\"}}", escape(&nested));
        }
    }
}
