//! `idl`: Rust and IDL of the types in files.

use thalweg::Type;
use thalweg::cdr::Layout;
use thalweg_types::idl::to_idl;
use thalweg_types::ros::RosPackages;

use crate::program::{Running, Said, TestFolder, command, run};

/// What `thalweg idl` makes of `generated/demo/msg/Pose.msg`.
#[allow(dead_code)]
mod made {
    include!("generated/generated_messages.rs");
}

const PART: &str = "module demo { enum Mood { CALM, WILD };
  @final struct Part { double at[2]; Mood mood; }; };";
const WHOLE: &str = "#include \"part.idl\"
module demo {
  struct Whole { @key long id; Part part; string<SIZE> name; };
};";

/// A folder with a file that includes another one, of the folder `inc`.
fn definitions() -> TestFolder {
    let folder = TestFolder::new();
    folder.write("whole.idl", WHOLE);
    std::fs::create_dir(folder.path("inc")).expect("a folder");
    folder.write("inc/part.idl", PART);
    folder
}

/// Runs `idl` without the ROS packages of this machine.
fn idl(words: &[&str]) -> Said {
    let mut idl = command(&[&["idl"], words].concat());
    idl.env_remove("AMENT_PREFIX_PATH");
    Running::start(idl).finish()
}

/// A file of the sources of this test.
fn source(name: &str) -> String {
    format!("{}/tests/it/generated/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[track_caller]
fn check_order(text: &str, parts: &[&str]) {
    let mut at = 0;
    for part in parts {
        let found = text[at..].find(*part);
        at += found.unwrap_or_else(|| panic!("{part:?} is not in its place in\n{text}")) + part.len();
    }
}

#[test]
fn idl_becomes_rust_with_what_it_includes_and_the_macros_that_are_given() {
    let folder = definitions();
    let (file, inc) = (folder.path("whole.idl"), folder.path("inc"));
    let words = [&file[..], "--include", &inc, "-D", "SIZE=7"];
    let said = idl(&words).expect_code(0);
    check_order(
        &said.stdout,
        &[
            "// Made by `thalweg idl`; change the source and make it again.\n",
            "pub mod demo {\n    use thalweg::Topic;\n",
            "    #[topic(name = \"demo::Mood\", extensibility = \"appendable\")]\n    pub enum Mood {\n",
            "        #[topic(name = \"WILD\")]\n        Wild = 1,\n    }\n",
            "    #[topic(name = \"demo::Part\", extensibility = \"final\")]\n    pub struct Part {\n",
            "        pub at: [f64; 2],\n",
            "    #[topic(name = \"demo::Whole\", extensibility = \"appendable\")]\n    pub struct Whole {\n",
            "        #[topic(key)]\n        pub id: i32,\n",
            "        pub part: Part,\n",
            "        #[topic(max_len = 7)]\n        pub name: String,\n    }\n}\n",
        ],
    );
    assert_eq!((said.stderr.as_str(), idl(&words).expect_code(0).stdout), ("", said.stdout));
}

#[test]
fn idl_becomes_one_text_of_idl_that_is_made_of_itself_again() {
    let folder = definitions();
    let (file, inc) = (folder.path("whole.idl"), folder.path("inc"));
    let words = [&file[..], "--include", &inc, "--define", "SIZE=7", "--as-idl"];
    let text = idl(&words).expect_code(0).stdout;
    check_order(&text, &["@final struct Part {", "@appendable struct Whole {", "string<7> name;"]);
    folder.write("again.idl", &text);
    let again = folder.path("again.idl");
    assert_eq!(idl(&[&*again, "--as-idl"]).expect_code(0).stdout, text);
    let of_cyclone = idl(&[&words[..], &["--default-final"]].concat()).expect_code(0).stdout;
    check_order(&of_cyclone, &["@final struct Part {", "@final struct Whole {"]);
    assert!(!of_cyclone.contains("@appendable"), "{of_cyclone}");
}

#[test]
fn what_is_not_understood_is_named_with_file_line_and_column() {
    let folder = definitions();
    let (file, inc) = (folder.path("whole.idl"), folder.path("inc"));
    folder.write("flags.idl", "bitmask Flags { F };");
    std::fs::create_dir_all(folder.path("demo/msg")).expect("a folder");
    folder.write("demo/msg/Far.msg", "int32 x\nfar/Thing thing\n");
    folder.write("demo/msg/Text.txt", "int32 x\n");
    let paths = ["flags.idl", "demo/msg/Far.msg", "demo/msg/Text.txt", "none.idl"].map(|name| folder.path(name));
    let [flags, far, text, none] = paths.each_ref().map(String::as_str);
    for (words, code, place, part) in [
        (&[&file[..], "--include", &inc][..], 2, format!("{file}:3:50: "), "there is no constant SIZE before here"),
        (&[&file[..], "-D", "SIZE=7"], 2, format!("{file}:1:1: "), "\"part.idl\" is nowhere; name its folder"),
        (&[far], 2, format!("{far}:2:1: "), "no package has the type far/msg/Thing; name the share folder"),
        (&[text], 2, format!("{text}:1:1: "), "is none of msg, srv and action"),
        (&[none], 2, format!("{none}:1:1: "), "No such file"),
        (&[flags], 1, "Flags: ".to_owned(), "a bit mask has no counterpart in Rust"),
        (&[&file[..], "-D", "7=SIZE"], 2, String::new(), "defines no macro"),
    ] {
        let said = idl(words).expect_code(code);
        assert!(said.stdout.is_empty(), "{words:?}: {}", said.stdout);
        assert!(said.stderr.contains(&place) && said.stderr.contains(part), "{words:?}: {}", said.stderr);
    }
    assert!(idl(&[flags, "--as-idl"]).expect_code(0).stdout.contains("bitmask Flags"));
    assert!(run(&["idl"]).expect_code(2).stderr.contains("FILES"));
}

#[test]
fn messages_of_ros_become_rust_that_tells_their_types() {
    let said = idl(&[&*source("demo/msg/Pose.msg"), "--share", &source("share")]).expect_code(0);
    let wanted = include_str!("generated/generated_messages.rs");
    assert!(said.stdout == wanted, "make generated_messages.rs again; it is now\n{}", said.stdout);
    let mut packages = RosPackages::new([source("share").into()]);
    let types = packages.read_file("demo", source("demo/msg/Pose.msg").as_ref()).expect("read");
    let mut of_rust = |name: &str, of: Option<Type>| {
        let found = types.iter().find(|found| found.name() == Some(name)).cloned();
        let found = found.or_else(|| packages.find(name).expect("read")).expect("the type");
        let [told, read] = [of.expect("a description"), found].map(|of| to_idl([&of]));
        assert_eq!(told, read, "{name}");
    };
    of_rust("demo::msg::dds_::Pose_", made::demo::msg::dds_::Pose::description());
    of_rust("far::msg::dds_::Thing_", made::far::msg::dds_::Thing::description());
}

#[test]
fn types_of_rust_are_the_idl_that_the_command_makes_of_their_source() {
    let said = idl(&[&*source("demo/msg/Pose.msg"), "--share", &source("share"), "--as-idl"]).expect_code(0);
    let of_rust = to_idl([&made::demo::msg::dds_::Pose::description().expect("a description")]);
    assert_eq!(said.stdout, of_rust);
    check_order(
        &of_rust,
        &["@final struct Other_ {", "string<5> name;", "sequence<::demo::msg::dds_::Other_> others;"],
    );
}

#[test]
fn comments_of_definitions_document_the_rust_types() {
    let folder = TestFolder::new();
    std::fs::create_dir_all(folder.path("demo/msg")).expect("a folder");
    folder.write("notes.idl", "/// What was seen.\nstruct Note {\n  /** When. */\n  long at;\n};\n");
    folder.write("demo/msg/Mark.msg", "# A place.\n\n# Metres.\nfloat64 x\n");
    let (note, mark) = (folder.path("notes.idl"), folder.path("demo/msg/Mark.msg"));
    let text = idl(&[&*note, &mark]).expect_code(0).stdout;
    let parts = ["/// What was seen.\n///\n/// `Note`\n", "    /// When.\n    ///\n    /// `at`\n"];
    check_order(
        &text,
        &[&parts[..], &["/// A place.\n", "pub struct Mark {\n", "/// Metres.\n", "pub x: f64,\n"]].concat(),
    );
}

#[test]
fn packages_are_those_of_the_folder_of_the_option_and_of_the_environment() {
    let other = source("demo/msg/Other.msg");
    assert!(idl(&[&*other]).expect_code(0).stdout.contains("name = \"demo::msg::dds_::Other_\""));
    let named = idl(&[&*other, "--package", "mine"]).expect_code(0).stdout;
    assert!(named.contains("name = \"mine::msg::dds_::Other_\""), "{named}");
    let mut command = command(&["idl", &source("demo/msg/Pose.msg"), "--as-idl"]);
    command.env("AMENT_PREFIX_PATH", format!("/no/such/prefix:{}", source("")));
    let said = Running::start(command).finish().expect_code(0);
    check_order(&said.stdout, &["@final struct Thing_ {", "boolean on;", "::far::msg::dds_::Thing_ thing;"]);
}

#[test]
fn services_and_actions_become_all_types_that_they_have_on_the_wire() {
    let folder = TestFolder::new();
    for kind in ["srv", "action"] {
        std::fs::create_dir_all(folder.path(&format!("demo/{kind}"))).expect("a folder");
    }
    folder.write("demo/srv/Add.srv", "int64 a\nint64 b\n---\nint64 sum 7\n");
    folder.write("demo/action/Go.action", "int32 order\n---\nint32[] sequence\n---\nint32[] partial\n");
    let files = ["demo/srv/Add.srv", "demo/action/Go.action"].map(|name| folder.path(name));
    let text = idl(&[&*files[0], &files[1], "--as-idl"]).expect_code(0).stdout;
    for (name, members) in [
        ("Add_Request_", &["long long a;", "long long b;"][..]),
        ("Add_Response_", &["@default(value=7) long long sum;"]),
        ("Go_Goal_", &["long order;"]),
        ("Go_Result_", &["sequence<long> _sequence;"]),
        ("Go_Feedback_", &["sequence<long> partial;"]),
        (
            "Go_SendGoal_Request_",
            &["::unique_identifier_msgs::msg::dds_::UUID_ goal_id;", "::demo::action::dds_::Go_Goal_ goal;"],
        ),
        ("Go_SendGoal_Response_", &["boolean accepted;", "::builtin_interfaces::msg::dds_::Time_ stamp;"]),
        ("Go_GetResult_Request_", &["::unique_identifier_msgs::msg::dds_::UUID_ goal_id;"]),
        ("Go_GetResult_Response_", &["int8 status;", "::demo::action::dds_::Go_Result_ result;"]),
        (
            "Go_FeedbackMessage_",
            &["::unique_identifier_msgs::msg::dds_::UUID_ goal_id;", "::demo::action::dds_::Go_Feedback_ feedback;"],
        ),
    ] {
        let body = text.split(&format!("@final struct {name} {{")).nth(1).unwrap_or_else(|| panic!("{name}: {text}"));
        let body = body.split('}').next().unwrap_or_default();
        assert_eq!(body.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>(), members, "{name}");
    }
    let rust = idl(&[&*files[0], &files[1]]).expect_code(0).stdout;
    check_order(
        &rust,
        &[
            "pub struct GoGetResultResponse {",
            "pub status: i8,",
            "pub result: GoResult,",
            "pub struct AddResponse {",
            "#[topic(default = 7)]",
            "pub sum: i64,",
        ],
    );
}
