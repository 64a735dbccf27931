//! First names: those by which people with a longer name are called, and those that look alike and are two.

/// Lines of a name and what its holders are called.
const NAMES: [&[&str]; 79] = [
    &["abigail", "abby", "abbie", "gail"],
    &["alexander", "alex", "sandy", "xander", "al"],
    &["alexandra", "alex", "sandra", "lexi", "sasha"],
    &["alfred", "alf", "fred"],
    &["amanda", "mandy"],
    &["andrew", "andy", "drew"],
    &["angela", "angie"],
    &["anthony", "antony", "tony"],
    &["arthur", "art", "artie"],
    &["barbara", "barb", "babs"],
    &["benjamin", "ben", "benny", "benji"],
    &["catherine", "katherine", "kathryn", "cathy", "kathy", "kate", "katie", "cath", "kath", "kat", "kit"],
    &["charles", "charlie", "chas", "chuck"],
    &["charlotte", "charlie", "lottie", "lotte"],
    &["christina", "chris", "chrissy", "tina"],
    &["christine", "chris", "chrissy", "christie"],
    &["christopher", "chris", "kit", "topher"],
    &["cynthia", "cindy"],
    &["daniel", "dan", "danny"],
    &["danielle", "dani", "danni"],
    &["david", "dave", "davey", "davo"],
    &["deborah", "debra", "deb", "debbie"],
    &["dimitrios", "dimitri", "jim", "jimmy", "dimi"],
    &["dorothy", "dot", "dottie", "dolly"],
    &["edward", "ed", "eddie", "ted", "teddy", "ned"],
    &["elizabeth", "elisabeth", "liz", "lizzie", "beth", "betty", "eliza", "libby", "lisa", "bess", "betsy"],
    &["emily", "em", "emmy"],
    &["frances", "fran", "frankie", "fanny"],
    &["francis", "frank", "frankie"],
    &["frederick", "fred", "freddie"],
    &["gabriella", "gabby"],
    &["gabrielle", "gabby"],
    &["geoffrey", "jeffrey", "geoff", "jeff"],
    &["gerald", "gerry", "jerry"],
    &["giuseppe", "joe", "beppe", "pino"],
    &["gregory", "greg"],
    &["henry", "harry", "hank"],
    &["isabella", "bella", "izzy"],
    &["isabelle", "isobel", "izzy", "belle"],
    &["jacqueline", "jackie", "jacqui"],
    &["james", "jim", "jimmy", "jamie", "jem"],
    &["jennifer", "jen", "jenny", "jenn"],
    &["jessica", "jess", "jessie"],
    &["john", "jack", "johnny", "jon"],
    &["jonathan", "jon", "johnny", "jonny"],
    &["joseph", "joe", "joey"],
    &["joshua", "josh"],
    &["judith", "judy", "jude"],
    &["kenneth", "ken", "kenny"],
    &["kimberley", "kimberly", "kim"],
    &["lawrence", "laurence", "larry", "laurie"],
    &["leonard", "len", "lenny", "leo"],
    &["margaret", "maggie", "peggy", "meg", "marg", "margie", "greta", "rita", "madge", "peg"],
    &["matthew", "matt", "matty"],
    &["michael", "mike", "mick", "mickey", "micky"],
    &["mohammed", "mohamed", "muhammad", "mohammad", "mo"],
    &["nicholas", "nicolas", "nick", "nicky", "nico"],
    &["nikolaos", "nick", "nikos", "nicholas"],
    &["pamela", "pam"],
    &["patricia", "pat", "patty", "trish", "tricia", "trisha"],
    &["patrick", "pat", "paddy"],
    &["peter", "pete"],
    &["philip", "phillip", "phil"],
    &["rebecca", "rebekah", "bec", "becky", "beck", "becca"],
    &["richard", "rick", "ricky", "dick", "rich", "richie"],
    &["robert", "rob", "bob", "bobby", "robbie", "bert"],
    &["samantha", "sam", "sammy"],
    &["samuel", "sam", "sammy"],
    &["stephen", "steven", "steve", "stevie"],
    &["susan", "suzanne", "susanne", "sue", "susie", "suzie"],
    &["theresa", "teresa", "terry", "tess", "terri", "tessa"],
    &["thomas", "tom", "tommy"],
    &["timothy", "tim", "timmy"],
    &["victoria", "vicki", "vicky", "vikki", "tori"],
    &["vincent", "vince", "vinnie"],
    &["walter", "wally", "walt"],
    &["william", "bill", "billy", "will", "willy", "liam"],
    &["yvonne", "evie", "vonnie"],
    &["zachary", "zac", "zach", "zack"],
];

/// Names that become another one by a few letters, each in one spelling: Julia and Julie, Tim and Tom.
const NAMES_OF_TWINS: &str = "\
    aaron adam adrian adriana alan alana alex alexa alexander alexandra alexandria alexis ali alia alice alicia \
    alina alison amal amara amelia amelie amir amira amy andrea andreas andrei andrew angela angelica angelina \
    angelo anil anita anna anne anton antonia antonio aria ariel arjun arun aruna asha ava ayla bella ben beth \
    brian bruce bruno camila camille cara carl carla carlo carlos carmel carmen carol carolina caroline cecil \
    cecilia celia celine charlene charles charlie charlotte chris christian christiana christina christine \
    christopher clara clare claude claudia claudine colin dale dan dana dane daniel daniela danielle dario dave \
    david dean diana diane dino dion dominic don donald donna dora doris duc dung duy dylan eden edith edward \
    edwin edwina elena eleni eli elise eliza ella ellen ellie elsa elsie emil emilia emilie emily emma eric \
    erica erin ethan eva evan evie farah faris felicia felix fiona frances francesca francesco francis frank \
    fred gabriel gabriela gabriella gabrielle gavin gemma gene george georgia georgina gerald geraldine gia gina \
    gino giulia giulio grace grant greta hana harriet harris harrison harry harvey heath helen helena helene \
    henri henry hieu hoa hoang hong hugh hugo hung huong huy ian ida ines irena irene irina iris isaac isabella \
    isabelle isla ivan ivana ivy jack jacob jade jai jake james jamie jan jana jane janet janice janine jared \
    jarrod jason jay jean jeanette jed jenna jenny jess jesse jill jim jin joan joanna joanne joe joel joey john \
    jonas jordan josh josie joy joyce juan judith judy jules julia julian juliana julianne julie juliet julius \
    jun june justin justine kai karen karim karima karina karl karla kate katie kay kayla keith kelly ken kerry \
    kevin khalid khalida kim kristina kristine kyle kylie lan lara laura laurel lauren lea leah leanne lee leila \
    lena leo leon leona leonie li lila lily lina linda linh lisa lola long louis louisa louise luan luca lucas \
    lucia lucian lucy luis luisa luke luna lydia mai malik manuel manuela marcel marco marcus margaret maria \
    marian marianne marie marina mario marion mark martha martin martina martine mary mason matt max maya megan \
    mei melanie melissa mia michael michaela michelle mick mike mila milan milo mina minh mira mohan molly mona \
    monica monique nadia nadine nam naomi nasir nasira natalia natalie nathan neil nell nga ngoc nia nicholas \
    nick nicola nicole nigel nikola nikolai nina noah noel noelle nora norma norman olga olive oliver olivia \
    omar oscar owen pat patrice patricia patrick paul paula paulina pauline penny perry peta peter petra phil \
    pia priya rahim rahima rahul raj ramon ramona rani raul ravi ray renata rhys rita rob robert roberta roberto \
    robin rod roger rohan roman romana ron rory rosa rosaria rosario rose rosie ross roy ruby russell ruth ryan \
    sabina sabrina sally sam samir samira sana sandra sandro sean serena shane shannon sharon silvia silvio \
    simon simona simone sofia sonia sophia sophie stan stefan stefania stella stephanie stephen sunil sunita \
    talia tam tamara tan tania tara tariq ted terry thanh theo theodora theodore thinh thomas thu thuy tim tina \
    toby todd tom tony trinh trung tuan tyler valentina valentine vera vicki victor victoria vijay vijaya vinh \
    viola violet vivian vivienne wei wen wendy will william yan yasmin yasmina yen yuan yuki yun zahir zahira \
    zahra zara zoe";

/// Returns whether both can be one person's name, each folded.
pub(super) fn are_of_one_name(one: &str, other: &str) -> bool {
    NAMES.iter().any(|names| names.contains(&one) && names.contains(&other))
}

/// Returns whether these are names of two persons rather than one name with a typing error, each folded.
pub(super) fn are_two_names(one: &str, other: &str) -> bool {
    let is_name =
        |name| NAMES_OF_TWINS.split(' ').chain(NAMES.into_iter().flatten().copied()).any(|known| known == name);
    is_name(one) && is_name(other) || has_ending_of_a_woman(one, other) || has_ending_of_a_woman(other, one)
}

/// Returns whether the second name is the first with an a: Karim and Karima, Rosario and Rosaria.
fn has_ending_of_a_woman(one: &str, other: &str) -> bool {
    let is_vowel = |letter: char| "aeiou".contains(letter);
    other.strip_suffix('a').is_some_and(|stem| match one.strip_prefix(stem) {
        Some("") => !stem.ends_with(is_vowel),
        Some(ending) => ending == "o" || ending == "e",
        None => false,
    })
}
