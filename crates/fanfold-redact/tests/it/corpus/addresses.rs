//! URLs that contain a secret, and self-contained texts: headers, cookies, encoded data.
//!
//! Only the secret part must be removed. The host and the user name may remain.

use super::kinds::{Sample, SampleKind};
use super::names;
use super::opaque::{human, url_safe};
use super::rng::{CorpusRng, base64};
use super::tokens;

pub(super) fn kinds() -> Vec<SampleKind> {
    vec![
        SampleKind::address("url-postgres", names::ADDRESS, |rng| {
            login(rng, "postgresql", "db.internal:5432/app?sslmode=require")
        }),
        SampleKind::address("url-mysql", names::ADDRESS, |rng| login(rng, "mysql", "10.0.3.17:3306/shop")),
        SampleKind::address("url-mongodb", &["mongo uri", "mongodb url"], |rng| {
            login(rng, "mongodb+srv", "cluster0.ab1cd.mongodb.net/app?retryWrites=true&w=majority")
        }),
        SampleKind::address("url-redis", &["redis url", "celery broker url"], redis),
        SampleKind::address("url-amqp", &["amqp url", "broker url"], |rng| {
            login(rng, "amqps", "mq.acme.dev:5671/prod")
        }),
        SampleKind::address("url-https-login", &["repo url", "proxy url", "index url"], |rng| {
            login(rng, "https", "artifacts.acme.dev/api/pypi/simple")
        }),
        SampleKind::address("url-git-token", &["remote url", "git url"], git_remote),
        SampleKind::address("mssql-string", &["connection string", "default connection"], mssql),
        SampleKind::address("libpq-string", &["dsn", "conninfo"], libpq),
        SampleKind::address("jdbc-url", &["jdbc url", "spring datasource url"], jdbc),
        SampleKind::address("go-mysql-dsn", &["dsn", "mysql dsn"], go_dsn),
        SampleKind::address("azure-storage-string", &["azure storage connection string"], azure_storage),
        SampleKind::address("azure-sas-url", &["blob sas url", "upload url"], azure_sas),
        SampleKind::address("aws-presigned-url", &["download url", "presigned url"], aws_presigned),
        SampleKind::address("slack-webhook", &["slack webhook url", "webhook url"], slack_webhook),
        SampleKind::address("discord-webhook", &["discord webhook url", "webhook"], discord_webhook),
        SampleKind::whole("basic-header", basic_header),
        SampleKind::whole("bearer-opaque", bearer_opaque),
        SampleKind::whole("cookie-session", cookie_session),
        SampleKind::whole("jwt-cookie", jwt_cookie),
        SampleKind::whole("jwt-url", jwt_url),
        SampleKind::whole("k8s-data", k8s_data),
        SampleKind::whole("docker-config-auth", docker_config),
        SampleKind::whole("aws-credentials-file", aws_credentials),
        SampleKind::whole("pgpass-line", pgpass),
    ]
}

/// `scheme://user:password@rest`.
fn login(rng: &mut CorpusRng, scheme: &str, rest: &str) -> Sample {
    let secret = url_safe(rng);
    let user = rng.pick(&["app", "svc_reader", "deploy", "root"]);
    Sample { value: format!("{scheme}://{user}:{secret}@{rest}"), secret }
}

/// Redis often has a password and no user.
fn redis(rng: &mut CorpusRng) -> Sample {
    let secret = url_safe(rng);
    let user = rng.pick(&["", "", "default"]);
    let scheme = rng.pick(&["redis", "rediss"]);
    Sample { value: format!("{scheme}://{user}:{secret}@cache.internal:6379/0"), secret }
}

fn git_remote(rng: &mut CorpusRng) -> Sample {
    let secret = rng.fill("{an40}");
    let user = rng.pick(&["x-access-token", "oauth2", "ci-bot", "x-token-auth"]);
    Sample { value: format!("https://{user}:{secret}@git.acme.dev/team/app.git"), secret }
}

fn mssql(rng: &mut CorpusRng) -> Sample {
    let secret = url_safe(rng);
    let key = rng.pick(&["Password", "Pwd", "password"]);
    Sample {
        value: format!("Server=tcp:sql1.acme.dev,1433;Database=shop;User ID=sa;{key}={secret};Encrypt=True;"),
        secret,
    }
}

fn libpq(rng: &mut CorpusRng) -> Sample {
    let secret = url_safe(rng);
    Sample {
        value: format!("host=db.internal port=5432 user=app password={secret} dbname=app sslmode=require"),
        secret,
    }
}

fn jdbc(rng: &mut CorpusRng) -> Sample {
    let secret = url_safe(rng);
    let value = match rng.below(3) {
        0 => format!("jdbc:postgresql://db.internal:5432/app?user=app&password={secret}"),
        1 => format!("jdbc:sqlserver://sql1.acme.dev:1433;databaseName=shop;user=sa;password={secret};"),
        _ => format!("jdbc:oracle:thin:scott/{secret}@//ora.internal:1521/ORCL"),
    };
    Sample { value, secret }
}

fn go_dsn(rng: &mut CorpusRng) -> Sample {
    let secret = url_safe(rng);
    Sample { value: format!("app:{secret}@tcp(10.0.3.17:3306)/shop?parseTime=true"), secret }
}

fn azure_storage(rng: &mut CorpusRng) -> Sample {
    if rng.one_in(3) {
        let secret = base64(&rng.bytes(32));
        let before = "Endpoint=sb://acme.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=";
        return Sample { value: format!("{before}{secret}"), secret };
    }
    let secret = base64(&rng.bytes(64));
    let before = "DefaultEndpointsProtocol=https;AccountName=acmestore;AccountKey=";
    Sample { value: format!("{before}{secret};EndpointSuffix=core.windows.net"), secret }
}

fn azure_sas(rng: &mut CorpusRng) -> Sample {
    let secret = base64(&rng.bytes(32)).replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
    let query = "sv=2022-11-02&ss=b&srt=sco&sp=rwdlac&se=2026-01-01T00:00:00Z&spr=https";
    Sample { value: format!("https://acmestore.blob.core.windows.net/in/a.csv?{query}&sig={secret}"), secret }
}

fn aws_presigned(rng: &mut CorpusRng) -> Sample {
    let secret = rng.fill("{hex64}");
    let scope = rng.fill("AKIA{bthirtytwo16}%2F20251104%2Feu-west-1%2Fs3%2Faws4_request");
    let query = format!("X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={scope}&X-Amz-Expires=3600");
    Sample { value: format!("https://acme.s3.amazonaws.com/a.csv?{query}&X-Amz-Signature={secret}"), secret }
}

fn slack_webhook(rng: &mut CorpusRng) -> Sample {
    let secret = rng.fill("{an24}");
    let path = rng.fill("T{upd10}/B{upd10}");
    Sample { value: format!("https://hooks.{}.com/services/{path}/{secret}", "slack"), secret }
}

fn discord_webhook(rng: &mut CorpusRng) -> Sample {
    let secret = rng.fill("{url68}");
    let host = rng.pick(&["discord.com", "discordapp.com"]);
    Sample { value: format!("https://{host}/api/webhooks/{}/{secret}", rng.fill("1{d18}")), secret }
}

/// A line of `~/.pgpass`. All fields but the password may be a star.
fn pgpass(rng: &mut CorpusRng) -> Sample {
    let secret = match rng.below(3) {
        0 => rng.fill("{an20}"),
        1 => human(rng).secret,
        _ => url_safe(rng),
    };
    let host = rng.pick(&["db.internal", "localhost", "10.0.3.17", "*", "pg-prod-1.acme.dev"]);
    let database = rng.pick(&["*", "shop", "app_production", "postgres"]);
    let user = rng.pick(&["postgres", "deploy", "svc-reader", "app_rw"]);
    let value = match rng.below(12) {
        0..=4 => format!("{host}:5432:{database}:{user}:{secret}"),
        5 | 6 => {
            format!("# hostname:port:database:username:password\n{host}:5432:{database}:{user}:{secret}")
        }
        7 => format!("{host}:5433:{database}:{user}:{secret}"),
        // A connection pooler in front of the server.
        8 => format!("{host}:6432:{database}:{user}:{secret}"),
        9 => format!("*:*:*:{user}:{secret}"),
        10 => format!("{host}:5432:{database}:{user}:{secret}\n{host}:5432:template1:{user}:"),
        _ => format!("echo '{host}:5432:{database}:{user}:{secret}' >> ~/.pgpass"),
    };
    Sample { value, secret }
}

fn basic_header(rng: &mut CorpusRng) -> Sample {
    let login = format!("deploy:{}", human(rng).secret);
    let secret = base64(login.as_bytes());
    let header = rng.pick(&["Authorization", "authorization", "Proxy-Authorization"]);
    Sample { value: format!("{header}: Basic {secret}"), secret }
}

/// A bearer token without a provider's format.
fn bearer_opaque(rng: &mut CorpusRng) -> Sample {
    let template = rng.pick(&["{an40}", "{hex32}", "{url86}", "{uuid}", "{an22}.{an43}"]);
    let secret = rng.fill(template);
    let before = rng.pick(&[
        "Authorization: Bearer",
        "authorization: bearer",
        "Authorization: Token",
        "Authorization: ApiKey",
    ]);
    Sample { value: format!("{before} {secret}"), secret }
}

fn cookie_session(rng: &mut CorpusRng) -> Sample {
    let secret = rng.fill("{an32}");
    let name =
        rng.pick(&["sessionid", "PHPSESSID", "JSESSIONID", "connect.sid", "_app_session", "laravel_session"]);
    let value = match rng.below(2) {
        0 => format!("Set-Cookie: {name}={secret}; Path=/; HttpOnly; Secure; SameSite=Lax"),
        _ => format!("Cookie: theme=dark; {name}={secret}; lang=en"),
    };
    Sample { value, secret }
}

fn jwt_cookie(rng: &mut CorpusRng) -> Sample {
    let secret = tokens::jwt_hs(rng).secret;
    let name = rng.pick(&["access_token", "id", "auth", "sb-access"]);
    Sample { value: format!("Cookie: lang=en; {name}={secret}; theme=dark"), secret }
}

fn jwt_url(rng: &mut CorpusRng) -> Sample {
    let secret = tokens::jwt_hs(rng).secret;
    let before = rng.pick(&["callback#access_token=", "verify?token=", "ws?jwt=", "magic/"]);
    Sample { value: format!("https://app.acme.dev/{before}{secret}"), secret }
}

/// The data of a Kubernetes Secret is base64, not encrypted.
fn k8s_data(rng: &mut CorpusRng) -> Sample {
    let secret = base64(human(rng).secret.as_bytes());
    let key = rng.pick(&["password", "db-password", "POSTGRES_PASSWORD", "token"]);
    let value = format!(
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: app-db\ntype: Opaque\ndata:\n  username: YXBw\n  {key}: {secret}"
    );
    Sample { value, secret }
}

fn docker_config(rng: &mut CorpusRng) -> Sample {
    let secret = base64(rng.fill("deploy:{an20}").as_bytes());
    Sample { value: format!(r#"{{"auths":{{"registry.acme.dev":{{"auth":"{secret}"}}}}}}"#), secret }
}

fn aws_credentials(rng: &mut CorpusRng) -> Sample {
    let secret = rng.fill("{bsf40}");
    let id = rng.fill("AKIA{bthirtytwo16}");
    Sample {
        value: format!(
            "[default]\naws_access_key_id = {id}\naws_secret_access_key = {secret}\nregion = eu-west-1"
        ),
        secret,
    }
}
