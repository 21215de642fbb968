//! Completion of topics: what clap makes of a command line knows no values of a running domain, but for an interface that it calls
//! unstable.

use clap::Command;

/// The commands that take a topic as their first argument without an option.
pub struct Taking<'a> {
    outer: Vec<&'a str>,
    /// Those of a command's own commands.
    inner: Vec<(&'a str, &'a str)>,
}

impl<'a> Taking<'a> {
    /// Those of a program that its help shows.
    pub fn of(program: &'a Command) -> Taking<'a> {
        let shown = |command: &'a Command| command.get_subcommands().filter(|command| !command.is_hide_set());
        let outer = shown(program).filter(|command| takes_topics(command)).map(Command::get_name).collect();
        let within = |command: &'a Command| {
            shown(command).filter(|inner| takes_topics(inner)).map(|inner| (command.get_name(), inner.get_name()))
        };
        Taking { outer, inner: shown(program).flat_map(within).collect() }
    }

    /// What stands behind bash's script.
    pub fn in_bash(&self) -> String {
        let inner: Vec<String> = self.inner.iter().map(|(outer, inner)| format!("'{outer} {inner}'")).collect();
        BASH.replace("OUTER", &self.outer.join("|")).replace("INNER", &inner.join("|")).trim_end().to_owned()
    }

    /// What stands behind fish's script.
    pub fn in_fish(&self) -> String {
        let outer = self.outer.iter().map(|name| format!("__fish_thalweg_using_subcommand {name}"));
        let inner = self.inner.iter().map(|(outer, inner)| {
            format!("__fish_thalweg_using_subcommand {outer}; and __fish_seen_subcommand_from {inner}")
        });
        let line = |condition| format!("complete -c thalweg -n \"{condition}\" -f -a \"(__thalweg_topics)\"\n");
        let lines: String = outer.chain(inner).map(line).collect();
        format!("{FISH}{}", lines.trim_end())
    }
}

fn takes_topics(command: &Command) -> bool {
    command.get_positionals().next().is_some_and(|argument| NAMES.contains(&argument.get_id().as_str()))
}

/// Zsh's script with the function that completes topics, where it would complete files.
pub fn in_zsh(script: &str) -> String {
    let is_topic = |line: &str| {
        let line = line.trim_start().trim_start_matches("'").trim_start_matches('*').trim_start_matches(':');
        NAMES.iter().any(|name| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(" -- ")))
    };
    let mut out = String::new();
    for line in script.lines() {
        if line.starts_with("if [ ") {
            out.push_str(ZSH);
        }
        match is_topic(line) {
            true => out.push_str(&line.replace(":_default'", ":_thalweg_topics'")),
            false => out.push_str(line),
        }
        out.push('\n');
    }
    out.trim_end().to_owned()
}

/// Names of arguments that are topics.
const NAMES: [&str; 2] = ["topic", "topics"];

/// Names come from strangers: `compgen -W` would expand what is in them, and unquoted ones would be commands.
const BASH: &str = r#"_thalweg_and_topics() {
    _thalweg "$@"
    local at word kept=() network=()
    case "${COMP_WORDS[1]} ${COMP_WORDS[2]}" in
        INNER) at=3 ;;
        *)
            case "${COMP_WORDS[1]}" in
                OUTER) at=2 ;;
                *) return 0 ;;
            esac
            ;;
    esac
    while (( at < COMP_CWORD )); do
        case "${COMP_WORDS[at]}" in
            --domain|--domain-tag) network+=("${COMP_WORDS[at]}" "${COMP_WORDS[at + 1]}"); (( at += 2 )) ;;
            *) return 0 ;;
        esac
    done
    if [[ "$2" == -* ]] || (( at != COMP_CWORD )); then
        return 0
    fi
    for word in "${COMPREPLY[@]}"; do
        case "$word" in
            -*|\<*|\[*) ;;
            *) kept+=("$word") ;;
        esac
    done
    COMPREPLY=("${kept[@]}")
    while IFS= read -r word; do
        if [[ "$word" == "$2"* ]]; then
            COMPREPLY+=("$(printf '%q' "$word")")
        fi
    done < <("$1" topic list --names --wait 0.8 "${network[@]}" 2>/dev/null)
}

if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
    complete -F _thalweg_and_topics -o nosort -o bashdefault -o default thalweg
else
    complete -F _thalweg_and_topics -o bashdefault -o default thalweg
fi
"#;

const FISH: &str = r#"function __thalweg_topics
    set -l words (commandline -opc)
    set -l network
    for at in (seq 2 (math (count $words) - 1))
        if contains -- $words[$at] --domain --domain-tag
            set -a network $words[$at] $words[(math $at + 1)]
        end
    end
    command $words[1] topic list --names --wait 0.8 $network 2>/dev/null
end
"#;

/// `compadd` quotes what it completes.
const ZSH: &str = r#"_thalweg_topics() {
    local -a network names
    local at
    for (( at = 1; at + 1 < CURRENT; at++ )); do
        case "$words[at]" in
            (--domain|--domain-tag) network+=("$words[at]" "$words[at+1]") ;;
        esac
    done
    names=("${(@f)$(thalweg topic list --names --wait 0.8 "${network[@]}" 2>/dev/null)}")
    compadd -a -- names
}

"#;
