//! What is hidden, by name and by place.

use super::*;

#[test]
fn x30_variables_that_look_like_secrets_are_hidden_and_ordinary_ones_are_not() {
    for name in [
        "GITHUB_TOKEN",
        "GH_TOKEN",
        "NPM_TOKEN",
        "AWS_ACCESS_KEY_ID",
        "AWS_PROFILE",
        "STRIPE_SECRET",
        "API_KEY",
        "MY_SERVICE_KEY",
        "DB_PASSWORD",
        "dbPassword",
        "SENTRY_DSN",
        "SMTP_PASS",
        "SECRET_KEY_BASE",
        "SSHPASS",
        "CI_JOB_JWT_V2",
        "NPM_CONFIG__AUTHTOKEN",
        "MYSQL_ROOT_PW",
        "KUBE_TOKEN_1",
        "ENCRYPTION_KEY_BASE64",
        "DB_PWD",
        "SSH_AUTH_SOCK",
        "DATABASE_URL",
        "OPENAI_API_KEY",
        "SOME_SECRET_ID",
        "secret",
        "APITOKEN",
        "APITOKEN_2",
        "MYSECRET",
        "PRIVATEKEY",
        "MYAPIKEY",
        "BEARER",
        "STRIPE_SK",
    ] {
        assert!(hides_variable(name, &[]), "{name}");
    }
    for name in [
        "PATH",
        "HOME",
        "LANG",
        "TERM",
        "WEALD_TOKEN",
        "EDITOR",
        "KEYMAP",
        "MONKEY",
        "monkey",
        "GITHUB_SHA",
        "KEYBOARD",
        "KEYBOARD_LAYOUT",
        "SECRETARY",
        "TASK",
        "DESK",
        "SKIP",
        "TOKENIZERS_PARALLELISM",
        "XDG_CONFIG_HOME",
        "CARGO_HOME",
        "SHELL",
        "DISPLAY",
        "XAUTHORITY",
        "PWD",
        "BYPASS",
    ] {
        assert!(!hides_variable(name, &[]), "{name}");
    }
}

#[test]
fn x30_a_value_with_a_password_is_a_secret() {
    for value in [
        "redis://app:hunter2@db:6379/0",
        "jdbc:postgresql://db/app?user=app&password=hunter2",
        "jdbc:sqlserver://db;user=app;Password=hunter2",
        "host=db user=app password=hunter2",
    ] {
        assert!(is_secret_value(value), "{value}");
    }
    for value in [
        "https://example.com/a:b@c",
        "ssh://git@host/x",
        "http://proxy:3128",
        "a:b@c",
        "jdbc:postgresql://db/app?user=app",
        "https://example.com/?password=",
        "-Dprompt.password=no",
    ] {
        assert!(!is_secret_value(value), "{value}");
    }
}

#[test]
fn x30_stores_are_hidden_under_the_name_that_reveals_them() {
    for (name, path) in [
        ("passwords", ".local/share/gopass"),
        ("passwords", ".config/gopass"),
        ("passwords", ".lpass"),
        ("passwords", ".local/share/lpass"),
        ("passwords", ".doppler"),
        ("forges", ".gcm/store"),
        ("registries", ".config/pnpm/rc"),
        ("registries", ".config/NuGet/NuGet.Config"),
        ("registries", ".nuget/NuGet/NuGet.Config"),
        ("registries", ".jfrog"),
        ("registries", ".config/nix/nix.conf"),
        ("docker", ".docker/contexts"),
        ("docker", ".docker/machine"),
        ("kube", ".minikube/profiles"),
        ("kube", ".config/argocd"),
        ("clouds", ".cloudflared"),
        ("clouds", ".supabase"),
        ("clouds", ".civo.json"),
        ("clouds", ".passwd-s3fs"),
        ("aws", ".awsvault"),
        ("agents", ".config/Code/User/globalStorage"),
        ("netrc", ".davfs2/secrets"),
        ("services", ".chef"),
        ("browsers", ".zen"),
        ("history", ".local/share/powershell/PSReadLine"),
        ("history", ".ipython/profile_default/history.sqlite"),
        ("history", ".local/share/mcfly"),
        ("history", ".irb_history"),
        ("history", ".config/fish/fish_history"),
    ] {
        assert!(hidden_paths(&[]).any(|hidden| hidden == path), "{path}");
        let revealed = [name.to_owned()];
        assert!(
            !hidden_paths(&revealed).any(|hidden| hidden == path),
            "{path}"
        );
    }
}

#[test]
fn x30_a_store_or_a_variable_is_revealed_by_its_name() {
    let revealed = ["aws".to_owned(), "MY_KEY".to_owned()];
    assert!(!hides_variable("AWS_SECRET_ACCESS_KEY", &revealed));
    assert!(!hides_variable("MY_KEY", &revealed));
    assert!(hides_variable("OTHER_KEY", &revealed));
    assert!(!hidden_paths(&revealed).any(|path| path == ".aws"));
    assert!(hidden_paths(&revealed).any(|path| path == ".ssh"));
}

#[test]
fn x30_a_store_is_hidden_where_a_variable_leads_its_program() {
    let home = Path::new("/home/u");
    let set = [
        ("XDG_CONFIG_HOME", "/cfg"),
        ("CARGO_HOME", "/cargo"),
        ("KUBECONFIG", "/k/one:/k/two:relative"),
        ("AWS_SHARED_CREDENTIALS_FILE", "/aws"),
        ("CLAUDE_CONFIG_DIR", "/claude"),
        // These can't be meant.
        ("NETRC", "/home"),
        ("GNUPGHOME", ""),
    ];
    let variable = |name: &str| {
        let found = set.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| PathBuf::from(value))
    };
    let found = places(hidden_paths(&[]), Some(home), variable);
    for path in [
        "/home/u/.config/gh",
        "/cfg/gh",
        "/cfg/gcloud",
        "/cargo/credentials.toml",
        "/k/one",
        "/k/two",
        "/aws",
        "/home/u/.aws",
        "/claude/.credentials.json",
        "/claude/.claude.json",
    ] {
        assert!(found.contains(&PathBuf::from(path)), "{path}");
    }
    for path in ["/home", "/", "/cfg", "relative", "/cargo"] {
        assert!(!found.contains(&PathBuf::from(path)), "{path}");
    }
    let aws = ["aws".to_owned()];
    let found = places(hidden_paths(&aws), Some(home), variable);
    assert!(!found.contains(&PathBuf::from("/aws")));
}

#[test]
fn x30_a_name_that_reveals_nothing_is_told_from_one_that_does() {
    for (name, nearest) in [
        ("awss", Some("aws")),
        ("regstries", Some("registries")),
        ("ssh", None),
        ("MY_THING", None),
        ("api_key", None),
    ] {
        assert_eq!(unknown_to_reveal(name), nearest, "{name}");
    }
}

#[test]
fn x30_what_a_project_uses_of_the_hidden_is_seen_in_its_files() {
    for (file, text, wanted) in [
        (
            ".npmrc",
            "registry=https://npm.corp.example/\n",
            "registries",
        ),
        (
            ".npmrc",
            concat!("registry=https://registry.npmjs", ".org/\n"),
            "",
        ),
        (
            ".npmrc",
            concat!("@own:registry=https://npm.pkg.github", ".com/\n"),
            "registries",
        ),
        (
            ".npmrc",
            "//npm.corp.example/:_authToken=${NPM_TOKEN}\n",
            "NPM_TOKEN",
        ),
        (
            ".yarnrc.yml",
            "npmRegistryServer: \"https://y.corp\"",
            "registries",
        ),
        (
            ".cargo/config.toml",
            "[registries.own]\nindex = \"sparse+https://c.corp/\"",
            "registries",
        ),
        (
            "pip.conf",
            "extra-index-url = https://p.corp/simple",
            "registries",
        ),
        (
            "pyproject.toml",
            "[[tool.uv.index]]\nurl = \"https://p.corp/simple\"",
            "registries",
        ),
        ("pyproject.toml", "[x]\nurl = \"https://p.corp/simple\"", ""),
        (
            "nuget.config",
            "<add key=\"own\" value=\"https://n.corp/v3\" />",
            "registries",
        ),
        ("pom.xml", "<url>https://project.example</url>", ""),
        (
            "pom.xml",
            "<repositories>\n<url>https://m.corp/r</url>",
            "registries",
        ),
        ("go.mod", "module corp/x", "netrc"),
        (".gitmodules", "\turl = git@host:a/b.git", "ssh"),
        (".gitmodules", "\turl = https://github.com/a/b.git", ""),
        (
            "Dockerfile",
            "FROM --platform=x reg.corp:5000/a AS b",
            "docker",
        ),
        ("Dockerfile", "FROM rust:1\n# FROM reg.corp/a", ""),
        ("compose.yaml", "    image: \"reg.corp/a\"", "docker"),
    ] {
        let found = uses(
            |name| (name == file).then(|| text.to_owned()),
            |name| name == "GOPRIVATE",
        );
        let names: Vec<_> = found.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names.join(" "), wanted, "{file}: {text}");
        assert!(project_files().any(|known| known == file), "{file}");
    }
}
