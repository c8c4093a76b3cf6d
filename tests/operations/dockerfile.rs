//! Parses a Dockerfile.

/// One instruction: its name in capitals, and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Instruction {
    pub(crate) name: String,
    pub(crate) rest: String,
}

impl Instruction {
    /// Its words without flags.
    pub(crate) fn operands(&self) -> Vec<&str> {
        let words = self.rest.split_whitespace();
        words.filter(|word| !word.starts_with("--")).collect()
    }

    /// The value of a flag.
    pub(crate) fn flag(&self, name: &str) -> Option<&str> {
        let mut words = self.rest.split_whitespace();
        words.find_map(|word| word.strip_prefix("--")?.strip_prefix(name)?.strip_prefix('='))
    }

    /// The words of the exec form, `["a", "b"]`.
    pub(crate) fn list(&self) -> Vec<String> {
        let start = self.rest.find('[').expect("the form without a shell");
        serde_json::from_str(&self.rest[start..]).expect("a list")
    }
}

/// A stage: its `FROM` and the following instructions.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) from: Instruction,
    pub(crate) steps: Vec<Instruction>,
}

impl Stage {
    pub(crate) fn all(&self, name: &str) -> Vec<&Instruction> {
        self.steps.iter().filter(|step| step.name == name).collect()
    }

    #[track_caller]
    pub(crate) fn one(&self, name: &str) -> &Instruction {
        let all = self.all(name);
        assert_eq!(all.len(), 1, "{name}: {all:?}");
        all[0]
    }

    /// The variables that its `ENV` instructions set.
    pub(crate) fn environment(&self) -> Vec<(String, String)> {
        let pairs = self
            .all("ENV")
            .into_iter()
            .flat_map(|step| step.rest.split_whitespace());
        let pair = |pair: &str| {
            pair.split_once('=')
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
        };
        pairs.map(|word| pair(word).expect("NAME=value")).collect()
    }
}

pub(crate) fn stages(text: &str) -> Vec<Stage> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let joined = lines.collect::<Vec<_>>().join("\n").replace("\\\n", " ");
    let mut stages = Vec::<Stage>::new();
    for line in joined.lines().filter(|line| !line.trim().is_empty()) {
        let (name, rest) = line.split_once(' ').unwrap_or_else(|| panic!("{line}"));
        let instruction = Instruction {
            name: name.to_owned(),
            rest: rest.trim().to_owned(),
        };
        match stages.last_mut() {
            _ if name == "FROM" => stages.push(Stage {
                from: instruction,
                steps: Vec::new(),
            }),
            Some(stage) => stage.steps.push(instruction),
            None => panic!("{line} stands before the first FROM"),
        }
    }
    stages
}
