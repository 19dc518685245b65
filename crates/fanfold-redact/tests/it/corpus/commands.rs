//! Contexts in commands and requests: shells, flags, curl, headers, URLs.

use super::kinds::Shape;
use super::rng::CorpusRng;
use super::sample::{NamedSample, RenderedSample, escape_double};

pub(super) fn shell_export(rng: &mut CorpusRng, sample: &NamedSample) -> RenderedSample {
    let is_quoted = rng.one_in(2) && !sample.generated.value.contains(['\'', '\\', '"', '$']);
    let escaped = if is_quoted { sample.raw() } else { sample.shell_word() };
    let quote = if is_quoted { "\"" } else { "" };
    let name = sample.name.screaming();
    let text = match rng.below(3) {
        0 => format!("export {name}={quote}{}{quote}", escaped.value),
        1 => format!("$ export {name}={quote}{}{quote} && make deploy", escaped.value),
        _ => format!("  512  export {name}={quote}{}{quote}", escaped.value),
    };
    escaped.render(text)
}

pub(super) fn inline_env(rng: &mut CorpusRng, sample: &NamedSample) -> RenderedSample {
    let escaped = sample.shell_word();
    let name = sample.name.screaming();
    let text = match rng.below(4) {
        0 => format!("{name}={} cargo test --workspace", escaped.value),
        1 => format!("docker run --rm -e {name}={} acme/app:latest", escaped.value),
        2 => format!("cd /srv/app && env {name}={} DEBUG=1 node server.js", escaped.value),
        _ => format!("sudo {name}={} ./deploy.sh prod", escaped.value),
    };
    escaped.render(text)
}

/// PowerShell, the Windows prompt, fish.
pub(super) fn other_shell(rng: &mut CorpusRng, sample: &NamedSample) -> RenderedSample {
    let name = sample.name.screaming();
    if rng.one_in(2) {
        let escaped = sample.raw();
        let text = format!("C:\\app> set {name}={}", escaped.value);
        return escaped.render(text);
    }
    let escaped = sample.in_doubled_single();
    let text = match rng.below(2) {
        0 => format!("PS> $env:{name} = '{}'", escaped.value),
        _ => format!("set -gx {name} '{}'", escaped.value),
    };
    escaped.render(text)
}

/// A flag whose name identifies a secret without a format. For a token any flag is suitable.
fn flag(rng: &mut CorpusRng, sample: &NamedSample) -> String {
    match sample.kind.shape {
        Shape::Password => {
            rng.pick(&["password", "db-password", "passwd", "pass", "admin-password"]).to_string()
        }
        Shape::Opaque => {
            rng.pick(&["token", "api-key", "secret", "auth-token", "client-secret", "apikey"]).to_string()
        }
        Shape::Token | Shape::Address | Shape::Whole | Shape::Block => sample.name.kebab(),
    }
}

pub(super) fn flag_space(rng: &mut CorpusRng, sample: &NamedSample) -> RenderedSample {
    let escaped = sample.shell_word();
    let flag = flag(rng, sample);
    let text = match rng.below(3) {
        0 => format!("acme login --user deploy --{flag} {}", escaped.value),
        1 => format!("$ ./sync --{flag} {} --dry-run", escaped.value),
        _ => format!("deploy  4121  0.3  python worker.py --{flag} {} --queue default", escaped.value),
    };
    escaped.render(text)
}

pub(super) fn flag_equals(rng: &mut CorpusRng, sample: &NamedSample) -> RenderedSample {
    let escaped = sample.shell_word();
    let flag = flag(rng, sample);
    let text = match rng.below(3) {
        0 => format!("acme login --{flag}={} --region eu", escaped.value),
        1 => format!("ExecStart=/usr/bin/acme --config /etc/acme.toml --{flag}={}", escaped.value),
        _ => format!("java -jar app.jar --{flag}={}", escaped.value),
    };
    escaped.render(text)
}

/// Commands that write a value to a store.
pub(super) fn store_setting(rng: &mut CorpusRng, sample: &NamedSample) -> RenderedSample {
    let escaped = sample.shell_word();
    let value = &escaped.value;
    let (snake, kebab, upper) = (sample.name.snake(), sample.name.kebab(), sample.name.screaming());
    let text = match rng.below(7) {
        0 => format!("kubectl create secret generic app --from-literal={kebab}={value}"),
        1 => format!("vault kv put secret/app {snake}={value}"),
        2 => format!("heroku config:set {upper}={value} -a acme"),
        3 => format!("gh secret set {upper} --body {value}"),
        4 => format!("fly secrets set {upper}={value}"),
        5 => format!("aws configure set {snake} {value}"),
        _ => format!("git config --global acme.{kebab} {value}"),
    };
    escaped.render(text)
}

pub(super) fn heredoc(rng: &mut CorpusRng, sample: &NamedSample) -> RenderedSample {
    let escaped = sample.raw();
    let file = rng.pick(&["~/.ssh/id_rsa", "server.key", "/etc/ssl/private/app.pem"]);
    let text = format!("cat > {file} <<'EOF'\n{}\nEOF\nchmod 600 {file}", escaped.value);
    escaped.render(text)
}

pub(super) fn mysql_flag(rng: &mut CorpusRng, sample: &NamedSample) -> RenderedSample {
    let escaped = sample.shell_word();
    let text = match rng.below(4) {
        0 => format!("mysql -u root -p{} -h 127.0.0.1 shop", escaped.value),
        1 => format!("mysqldump -uroot -p{} --all-databases > all.sql", escaped.value),
        2 => format!("sshpass -p {} ssh deploy@10.0.0.4", escaped.value),
        _ => format!("redis-cli -h cache.internal -a {} ping", escaped.value),
    };
    escaped.render(text)
}

/// Programs that take a password after a short flag.
pub(super) fn login_flag(rng: &mut CorpusRng, sample: &NamedSample) -> RenderedSample {
    let escaped = sample.shell_word();
    let value = &escaped.value;
    let text = match rng.below(12) {
        0 => format!("docker login -u deploy -p {value} registry.acme.dev"),
        1 => format!(
            "$ docker login registry.acme.dev -u ci-bot -p {value} && docker push registry.acme.dev/app"
        ),
        2 => format!("      - run: docker login -p {value} -u $CI_USER ghcr.acme.dev"),
        3 => format!("sudo podman login --username ci -p {value} registry.acme.dev:5000"),
        4 => format!("\tdocker login -u $(DOCKER_USER) -p={value}"),
        5 => format!("docker login \\\n  -u deploy \\\n  -p {value} \\\n  registry.acme.dev"),
        6 => format!("  218  sshpass -p {value} ssh -o StrictHostKeyChecking=no root@10.0.0.4 uptime"),
        7 => format!("sshpass -p{value} scp -P 2222 build.tgz deploy@10.0.0.4:/srv"),
        8 => {
            format!("cd /srv && sshpass -p {value} ssh -p 2222 deploy@build.acme.dev 'systemctl restart app'")
        }
        9 => format!("rsync -e \"sshpass -p {value} ssh\" -a dist/ deploy@10.0.0.4:/srv"),
        10 => format!("{{\"command\": \"docker login -u deploy -p {}\"}}", escape_double(value)),
        _ => format!("RUN docker login -u deploy -p {value} registry.acme.dev"),
    };
    let secret = if text.starts_with('{') { escape_double(&escaped.secret) } else { escaped.secret };
    RenderedSample { text, secret }
}

/// A header that contains a key.
fn header(rng: &mut CorpusRng, sample: &NamedSample) -> String {
    let name = sample.name.header();
    match rng.below(6) {
        0 | 1 => "Authorization: Bearer".to_string(),
        2 => "X-Api-Key:".to_string(),
        3 => "X-Auth-Token:".to_string(),
        4 => "api-key:".to_string(),
        _ if sample.kind.shape == Shape::Opaque && !name.starts_with('X') => format!("X-{name}:"),
        _ => "PRIVATE-TOKEN:".to_string(),
    }
}

pub(super) fn curl_header(rng: &mut CorpusRng, sample: &NamedSample) -> RenderedSample {
    let escaped = sample.raw();
    let header = header(rng, sample);
    let text = match rng.below(3) {
        0 => format!("curl -s -H \"{header} {}\" https://api.acme.dev/v1/models", escaped.value),
        1 => format!(
            "curl -X POST https://api.acme.dev/v1/jobs \\\n  -H 'Content-Type: application/json' \\\n  -H '{header} {}'",
            escaped.value
        ),
        _ => {
            let space = if header.ends_with(':') { "" } else { " " };
            format!("http GET api.acme.dev/v1/me '{header}{space}{}'", escaped.value)
        }
    };
    escaped.render(text)
}

pub(super) fn curl_user(rng: &mut CorpusRng, sample: &NamedSample) -> RenderedSample {
    let is_quoted = !sample.generated.value.contains(['\'', '\\']);
    let escaped = sample.raw();
    let quote = if is_quoted { "'" } else { "" };
    let text = match rng.below(3) {
        0 => format!("curl -u {quote}deploy:{}{quote} https://api.acme.dev/v1/jobs", escaped.value),
        1 => {
            format!("curl --user {quote}ci@acme.dev:{}{quote} -T a.tgz https://repo.acme.dev/", escaped.value)
        }
        _ => format!(
            "wget --http-user=deploy --http-password={quote}{}{quote} https://repo.acme.dev/a.tgz",
            escaped.value
        ),
    };
    escaped.render(text)
}

pub(super) fn http_dump(rng: &mut CorpusRng, sample: &NamedSample) -> RenderedSample {
    let escaped = sample.raw();
    let header = header(rng, sample);
    let text = match rng.below(3) {
        0 => format!(
            "> GET /v1/models HTTP/2\n> Host: api.acme.dev\n> user-agent: curl/8.5.0\n> {} {}\n> accept: */*",
            header.to_lowercase(),
            escaped.value
        ),
        1 => format!(
            "POST /v1/jobs HTTP/1.1\r\nHost: api.acme.dev\r\n{header} {}\r\nContent-Length: 12\r\n",
            escaped.value
        ),
        _ => {
            let (name, scheme) = header.split_once(':').expect("a header has a colon");
            format!(
                "headers: {{ 'content-type': 'application/json', '{name}': '{}{}' }}",
                scheme.trim_start().replace("Bearer", "Bearer "),
                escaped.value
            )
        }
    };
    escaped.render(text)
}

pub(super) fn url_query(rng: &mut CorpusRng, sample: &NamedSample) -> RenderedSample {
    let escaped = sample.in_url();
    let key = match sample.kind.shape {
        Shape::Password => rng.pick(&["password", "pwd", "pass"]),
        Shape::Token => rng.pick(&["key", "token", "api_key", "access_token", "auth", "k"]),
        Shape::Opaque | Shape::Address | Shape::Whole | Shape::Block => {
            rng.pick(&["api_key", "access_token", "token", "apikey", "client_secret", "auth_token"])
        }
    };
    let text = match rng.below(3) {
        0 => format!("GET https://api.acme.dev/v1/items?page=2&{key}={}&sort=asc 200 31ms", escaped.value),
        1 => format!("wss://stream.acme.dev/ws?{key}={}", escaped.value),
        _ => format!(
            "10.0.0.7 - - [04/Nov/2025:10:11:12 +0000] \"GET /login?{key}={} HTTP/1.1\" 302 0",
            escaped.value
        ),
    };
    escaped.render(text)
}

pub(super) fn form_body(rng: &mut CorpusRng, sample: &NamedSample) -> RenderedSample {
    let escaped = sample.in_url();
    let text = match (sample.kind.shape, rng.below(2)) {
        (Shape::Password, 0) => format!("grant_type=password&username=deploy&password={}", escaped.value),
        (Shape::Password, _) => {
            format!("--data-urlencode 'user=deploy' --data-urlencode 'password={}'", escaped.value)
        }
        (_, 0) => format!("grant_type=client_credentials&client_id=acme-web&client_secret={}", escaped.value),
        (_, _) => format!("refresh_token={}&grant_type=refresh_token&client_id=acme-web", escaped.value),
    };
    escaped.render(text)
}
