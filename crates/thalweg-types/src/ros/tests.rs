//! What is read of definitions of ROS, and what is refused.

use super::*;
use crate::document::Document;
use crate::idl::to_idl;

fn share() -> PathBuf {
    let share =
        std::env::temp_dir().join(format!("thalweg-ros-{}-{:?}", std::process::id(), std::thread::current().id()));
    let write = |name: &str, text: &str| {
        let file = share.join(name);
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("made");
        std::fs::write(file, text).expect("written");
    };
    write("builtin_interfaces/msg/Time.msg", "int32 sec\nuint32 nanosec\n");
    write("std_msgs/msg/Header.msg", "builtin_interfaces/Time stamp\nstring frame_id\n");
    write("std_msgs/msg/Empty.msg", "");
    write(
        "demo/msg/All.msg",
        "# All kinds.\nuint8 A=1 # a constant\nstring B=\"with # in it\"\nHeader header\nbool on true\nbyte b\nchar c\n\
         float32[3] x\nint16[] y\nfloat64[<=5] z [1, 2]\nstring<=7 s 'it''s'\nwstring w\nOther[2] others\nstring<=3[<=4] texts",
    );
    write("demo/msg/Other.msg", "int64 n\n");
    write("demo/msg/Loop.msg", "Loop again\n");
    write("demo/msg/Bad.msg", "int32 x\nint32 y 7\n  strange z\n");
    write("own/msg/Header.msg", "int64 number\n");
    write("own/msg/Headed.msg", "Header header\nstd_msgs/Header other\n");
    write("demo/srv/Add.srv", "int64 a\n---\nint64 sum\n");
    write("demo/action/Go.action", "int32 order\n---\nint32[] sequence\n---\nint32[] partial\n");
    share
}

#[test]
fn definitions_become_the_types_that_ros_has_on_the_wire() {
    let mut packages = RosPackages::new([share()]);
    let all = packages.find("demo::msg::dds_::All_").expect("read").expect("found");
    let text = to_idl([&all]);
    for line in [
        "::std_msgs::msg::dds_::Header_ header;",
        "boolean on;",
        "octet b;",
        "uint8 c;",
        "float x[3];",
        "sequence<short> y;",
        "sequence<double, 5> z;",
        "string<7> s;",
        "wstring w;",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    assert!(
        text.contains("::demo::msg::dds_::Other_ others[2];") && text.contains("sequence<string<3>, 4> texts;"),
        "{text}"
    );
    let empty = to_idl([&packages.find("std_msgs/msg/Empty").expect("read").expect("found")]);
    assert!(empty.contains("uint8 structure_needs_at_least_one_member;"), "{empty}");
    for name in [
        "demo::srv::dds_::Add_Request_",
        "demo/srv/Add_Response",
        "demo/action/Go_FeedbackMessage",
        "demo/action/Go_Goal",
    ] {
        assert!(packages.find(name).expect("read").is_some(), "{name}");
    }
    assert_eq!(packages.find("nowhere/msg/Nothing"), Ok(None));
    assert_eq!(packages.find("ShapeType"), Ok(None));
}

#[test]
fn members_have_the_defaults_that_ros_gives_them() {
    let mut packages = RosPackages::new([share()]);
    let text = r#"
        bool on true
        bool off 0
        int32 n -5 # five
        float64 x 0.25
        string a hello world
        string b "with # in it"
        string c 'it\'s'
        uint8[3] octets [1, 2, 3]
        float32[] row [1, 0.5]
        bool[<=2] flags [True, 0]
        string[] texts ["a, b", 'c']
        int32 none
        int32[] empty []
    "#;
    let types = packages.read_text("p", "msg", "T", text, None).expect("read");
    let Type::Structure(structure) = &types[0] else { panic!("a structure") };
    let empty = Document::Map(Vec::new());
    let told = crate::codec::completed(structure, empty).to_json().expect("JSON");
    let expect = r#"{"on":true,"off":false,"n":-5,"x":0.25,"a":"hello world","b":"with # in it","c":"it's","octets":"0x010203","row":[1.0,0.5],"flags":[true,false],"texts":["a, b","c"],"none":0,"empty":[]}"#;
    assert_eq!(String::from_utf8(told).expect("text"), expect);
    let inner = packages.read_text("p", "msg", "Outer", "T inner", None).expect("read");
    let Type::Structure(outer) = &inner[0] else { panic!("a structure") };
    let told = crate::codec::completed(outer, Document::Map(Vec::new())).to_json().expect("JSON");
    assert_eq!(String::from_utf8(told).expect("text"), format!(r#"{{"inner":{expect}}}"#));
}

#[test]
fn a_name_without_a_package_is_that_of_the_own_package_first() {
    let mut packages = RosPackages::new([share()]);
    let text = to_idl([&packages.find("own/msg/Headed").expect("read").expect("found")]);
    for line in ["::own::msg::dds_::Header_ header;", "::std_msgs::msg::dds_::Header_ other;"] {
        assert!(text.contains(line), "{line} in {text}");
    }
}

#[test]
fn what_is_not_understood_is_named_with_its_place() {
    let mut packages = RosPackages::new([share()]);
    let error = packages.find("demo/msg/Bad").expect_err("an error").to_string();
    assert!(
        error.ends_with(
            "demo/msg/Bad.msg:3:3: no package has the type demo/msg/strange; name the share folder that has it"
        ),
        "{error}"
    );
    let error = packages.find("demo/msg/Loop").expect_err("an error").to_string();
    assert!(error.contains("contains itself"), "{error}");
    let mut refused = |text: &str, part: &str| {
        let error = packages.read_text("p", "msg", "T", text, None).expect_err("an error").to_string();
        assert!(error.contains(part), "{part:?} in {error}");
    };
    refused("int32", "needs a name");
    refused("int32[0] x", "no size");
    refused("int32<=3 x", "has no bound");
    refused("int32 x\nint32 x", "line 2, column 7: there is a member x already");
    refused("int32 x\nint32 y extra", "line 2, column 9: the default of y: a whole number");
    refused("int8 x 128", "the default of x: a whole number from -128 to 127 is needed, not 128");
    refused("int8[2] x [1]", "1 elements, where there must be 2");
    refused("string<=2 x 'abc'", "3 bytes, where 2 are allowed");
    refused("int32 9x", "no name");
    refused("int32 x\n---\nint32 y", "2 parts");
}
