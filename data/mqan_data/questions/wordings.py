"""Wordings that fit any label set or any field, by what the dataset file calls it."""

CHOOSE = (
    "What is the {kind}?",
    "Which {kind} is it?",
    "Which {kind} fits?",
    "Which {kind} fits best?",
    "Which {kind} applies?",
    "What {kind} is this?",
    "Pick the right {kind}.",
    "Choose the {kind}.",
    "Classify the text.",
    "Classify this by {kind}.",
    "Assign a {kind}.",
    "Select the {kind} that fits the text best.",
    "Determine the {kind}.",
    "Label this text.",
    "Which label fits?",
    "Which of these fits?",
    "Which of these {kinds} fits best?",
    "{kind}",
    "{kind}?",
    "{kind}:",
    "Tell me the {kind}.",
    "What would you say is the {kind}?",
)

CHOOSE_FROM = (
    "Is the {kind} {options}?",
    "Is it {options}?",
    "{options}?",
    "Choose from: {options}.",
    "Which of these is it: {options}?",
    "Which fits best: {options}?",
    "What is the {kind}: {options}?",
    "Classify as {options}.",
    "Classify the text into one of these {kinds}: {options}.",
    "Pick the {kind} from: {options}",
    "Is this {options}?",
    "Does this belong to {options}?",
    "Label the text as {options}.",
    "{kind} ({options})",
)

CHOOSE_SEVERAL = (
    "Which {kinds} apply?",
    "Which of these {kinds} apply?",
    "Which {kinds} fit?",
    "Select all {kinds} that apply.",
    "Tick everything that applies.",
    "What are the {kinds}?",
    "Name all the right {kinds}.",
    "Which of these are right?",
    "{kinds}",
    "Mark every {kind} that fits the text.",
)

IS_IT = (
    "Is the {kind} {label}?",
    'Is the {kind} "{label}"?',
    "Is this about {label}?",
    'Does the {kind} "{label}" fit?',
    "Is {label} the right {kind}?",
    'Would "{label}" be the right {kind}?',
    'Can this be filed under "{label}"?',
    "Does {label} apply here?",
    "{kind}: {label}?",
    'Would you label this "{label}"?',
)

IS_IT_NOT = (
    "Is the {kind} something other than {label}?",
    'Is the {kind} anything but "{label}"?',
    'Is it wrong to label this "{label}"?',
    'Would "{label}" be the wrong {kind}?',
    'Is "{label}" a label that does not fit?',
)

DESCRIBED = (
    "Does this description fit: {description}?",
    "Does this fit the text: {description}?",
    'Is it right to say of the text "{description}"?',
)

STATEMENT = (
    "True or false: the {kind} is {label}.",
    "The {kind} is {label}. True or false?",
    'True or false: "{label}" is the right {kind}.',
)

STATEMENT_NOT = (
    "True or false: the {kind} is not {label}.",
    "The {kind} is not {label}. True or false?",
    'True or false: "{label}" is not the right {kind}.',
)

FIELD = (
    "What is the {name}?",
    "What is the {name}?",
    "{name}",
    "{name}?",
    "{name}:",
    "Extract the {name}.",
    "Extract the {name}",
    "Find the {name}.",
    "Find the {name} in the text.",
    "Give the {name}.",
    "Give me the {name}.",
    "Which {name} is mentioned?",
    "Which {name} is given?",
    "What {name} is mentioned?",
    "What {name} does the text give?",
    "Tell me the {name}.",
    "Name the {name}.",
    "State the {name}.",
    "Read off the {name}.",
    "Please extract the {name}",
    "What does it say for {name}?",
    "Fill in the {name}.",
    "Is {a} {name} given, and which?",
)

FIELD_DESCRIBED = (
    "What is the {description}?",
    "{description}",
    "{description}?",
    "Find the {description}.",
    "Extract: {description}.",
    "Which one is the {description}?",
    "Extract this: {description}",
)

FIELD_ALL = (
    "Which {names} are mentioned?",
    "What {names} are mentioned?",
    "What are the {names}?",
    "List the {names}.",
    "List all {names}.",
    "List all {names} in the text.",
    "Extract all {names}.",
    "Name all {names}.",
    "Find every {name}.",
    "All {names}",
    "{names}",
    "{names}:",
    "Give me all the {names}.",
    "Which {names} does the text mention?",
    "What are all the {names} in this text?",
)

FIELD_FIRST = (
    "What is the first {name}?",
    "Which {name} comes first?",
    "Which {name} is mentioned first?",
    "What is the first {name} mentioned?",
    "Extract the first {name}.",
    "first {name}",
)

FIELD_LAST = (
    "What is the last {name}?",
    "Which {name} comes last?",
    "Which {name} is mentioned last?",
    "What is the last {name} mentioned?",
    "Extract the last {name}.",
    "last {name}",
)

MENTIONS = (
    "Is {a} {name} mentioned?",
    "Does the text mention {a} {name}?",
    "Does the text give {a} {name}?",
    "Is there {a} {name} in the text?",
    "Does it say which {name}?",
    "Is any {name} named here?",
)

KIND_OF_MENTION = (
    'What kind of thing is "{mention}"?',
    "What is {mention}?",
    'Which type does "{mention}" have?',
    "What type of name is {mention}?",
    'Classify "{mention}" as it is used here.',
)

IS_MENTION = ('Is "{mention}" {a} {name}?', "Is {mention} {a} {name}?", '"{mention}": is that {a} {name}?')

WHICH_MENTION = (
    "Which of these is {a} {name}?",
    "Which one is {a} {name}?",
    "Pick the {name}.",
    "Which is the {name}?",
)

IS_ANSWER = (
    '{question} Is "{answer}" the right answer?',
    '{question} Is it "{answer}"?',
    '{question} Is the answer "{answer}"?',
    'Is "{answer}" the right answer to: {question}',
    '{question} Would "{answer}" be right?',
)
"""Questions about one of the answers of a multiple choice."""

IS_TRUE = (
    "Is it true that {s}?",
    "Is it true that {s}?",
    "According to the text, is it true that {s}?",
    "Is it right that {s}?",
    "Is it correct that {s}?",
    "Is it the case that {s}?",
    "Would it be right to say that {s}?",
    "Can I take it that {s}?",
    "{S}, correct?",
)
"""Questions with a statement ``{s}`` that a text affirms, denies or leaves open; ``{S}`` begins with a capital."""

IS_TRUE_SPOKEN = (*IS_TRUE, "So {s}?", "{S}?", "{S}?", "{S}, right?")
"""The same for statements without a negation: "He is not ill?" can be agreed to by yes and by no."""

IS_TRUE_QUOTED = (
    "Is this true: {full}",
    "Is this statement true? {full}",
    'Is the statement "{full}" true?',
    "Is the following right according to the text? {full}",
    "{full} Is that right?",
    "{full} Is that true?",
    "{full} Is this correct?",
)
"""The same with the statement by itself."""

IS_FALSE = (
    "Is it false that {s}?",
    "Is it wrong to say that {s}?",
    "Is it untrue that {s}?",
    "Is it incorrect that {s}?",
    "According to the text, is it false that {s}?",
)

IS_FALSE_QUOTED = (
    "Is this false: {full}",
    'Is the statement "{full}" false?',
    "{full} Is that wrong?",
    "Is the following incorrect? {full}",
)

TRUE_OR_FALSE = (
    "True or false: {full}",
    "True or false? {full}",
    "{full} True or false?",
    "{full}",
    "Is this true or false: {full}",
    "Is this true according to the text? {full}",
    'Is the statement "{full}" true?',
)

CHECK = (
    "{full}",
    "Check this against the text: {full}",
    "How does the text stand on this: {full}",
    "Statement: {full}",
    'What about the statement "{full}"?',
    "Judge this by the text: {full}",
    "Claim: {full} What does the text make of it?",
    "Is this so? {full}",
)

ABOUT_THE_TEXT = (
    "According to the text, {question}",
    "According to the text, {question}",
    "Going by the text, {question}",
    "From what is said here, {question}",
    "{Question} Go by the text alone.",
)
"""Questions that are asked within or before a few words."""
