package diag

// Code names one kind of problem for good: RBT1xxx project and YAML, 2xxx
// template, 3xxx graph and selection, 4xxx SQL and engine, 5xxx publish and
// I/O, 6xxx assertions, 7xxx ingest. A code is never used for another kind
// later. docs/errors.md explains each.
type Code string

// Project files and YAML.
const (
	YAMLSyntax   Code = "RBT1001" // the text is not YAML
	UnknownKey   Code = "RBT1002" // a key that rbt does not know
	DuplicateKey Code = "RBT1003" // one key twice in one mapping
	BadValue     Code = "RBT1004" // a value of the wrong kind or outside what is allowed
	MissingKey   Code = "RBT1005" // a key that must be there is not
	Unsupported  Code = "RBT1006" // a dbt key or feature that rbt does not have
	BadName      Code = "RBT1007" // a name that a model, seed, source or test cannot have
	NameClash    Code = "RBT1008" // two things with one name
	BadPath      Code = "RBT1009" // a path that leads out of where it may lead
	NoProject    Code = "RBT1010" // no project.yml, or a file that cannot be read
	UnknownNode  Code = "RBT1011" // a model, seed, source or target in YAML that does not exist
	UnknownTest  Code = "RBT1012" // a kind of test that does not exist
	Unclosed     Code = "RBT1013" // frontmatter that is never closed
	Contradicted Code = "RBT1014" // two places that say different things about one model
	Misplaced    Code = "RBT1015" // a key or file that belongs elsewhere
)

// Templates.
const (
	TemplateSyntax      Code = "RBT2001" // the template text cannot be parsed
	UndefinedName       Code = "RBT2002" // a name, attribute, item, filter, test or macro that does not exist
	TemplateType        Code = "RBT2003" // an operation on a value of the wrong type, or wrong arguments of a call
	TemplateValue       Code = "RBT2004" // a value of the right type that the operation cannot use
	TemplateBudget      Code = "RBT2005" // a template that needs more steps, text or depth than a render may use
	TemplateUnsupported Code = "RBT2006" // a construct of Jinja2 or Python that templates of rbt do not have
	TemplateRaised      Code = "RBT2007" // an error that the template raised itself
	DuplicateMacro      Code = "RBT2008" // two macros or tests with one name
	TemplateHost        Code = "RBT2009" // a function that rbt gives to templates could not do its work
)

// What rbt puts into templates.
const (
	UnknownRef    Code = "RBT2020" // ref() of something that is no model, seed or ingest output
	UnknownSource Code = "RBT2021" // source() of a table that is not declared
	UnknownVar    Code = "RBT2022" // var() of a variable that nothing sets
	UnknownEnv    Code = "RBT2023" // env_var() of a variable that is not set
	DisabledRef   Code = "RBT2024" // ref() of a model that is disabled
	SecretUsed    Code = "RBT2025" // a secret outside of project.yml
	BadCall       Code = "RBT2026" // arguments that a function of rbt cannot take
	BadMacro      Code = "RBT2027" // a test block without its parameters, or with a name that rbt has
	LateRef       Code = "RBT2028" // a reference that is met only when the model runs, and is no dependency
)

// Graph and selection.
const (
	Cycle              Code = "RBT3001" // nodes that read each other in a circle
	SelfReference      Code = "RBT3002" // a model that reads itself other than through this
	BareName           Code = "RBT3003" // a model's name in text that the engine's parser refuses to look into, or in other letters than its own
	SelectorSyntax     Code = "RBT3010" // a selector that cannot be read
	SelectorMethod     Code = "RBT3011" // a method of selectors, or a value of one, that rbt does not have
	SelectorUnknown    Code = "RBT3012" // a selector term that matches nothing
	SelectionEmpty     Code = "RBT3013" // terms that each match something and together nothing
	SelectorNeedsState Code = "RBT3014" // state:, result: or source_status: with nothing to compare with
	DeferLake          Code = "RBT3015" // a lake to defer to that is not known or not there
	RetryRefused       Code = "RBT3016" // nothing that could be retried, or a project that is no longer the one that ran
	ParentUnpublished  Code = "RBT3020" // a selected node reads what was never published and is not selected
)

// SQL and the engine.
const (
	SQLEmpty         Code = "RBT4001" // no statement where one query is expected
	SQLTwoStatements Code = "RBT4002" // more than one statement
	SQLNotAQuery     Code = "RBT4003" // a statement that is not a query
	SQLParameter     Code = "RBT4004" // ? or $1 in a model
	SQLSyntax        Code = "RBT4005" // text that is not SQL
	SQLUnknownColumn Code = "RBT4006" // a column that no relation in scope has
	SQLUnknownTable  Code = "RBT4007" // a relation that does not exist
	SQLUnknownFunc   Code = "RBT4008" // a function that does not exist, or not for these types
	SQLBind          Code = "RBT4009" // the engine refuses the query before it runs
	SQLRuntime       Code = "RBT4010" // the query failed on its data
	EngineSetting    Code = "RBT4011" // an engine setting that does not exist or that rbt owns
	EngineResource   Code = "RBT4012" // memory, disk or files ran out
	SourceMissing    Code = "RBT4020" // no file where a source expects one
	SourceColumn     Code = "RBT4021" // a declared column that a file does not have, or one too many
	SourceValue      Code = "RBT4022" // a value or row of a source file that cannot be read as declared
	SourceOption     Code = "RBT4023" // an option of a source that does not exist or does not fit its format
	SourceSchema     Code = "RBT4024" // files of one source that disagree on a column's type
)

// Publishing and the lake.
const (
	LakeLocked      Code = "RBT5001" // another run holds the lake
	LakeDamaged     Code = "RBT5002" // a manifest, receipt or data file that cannot be relied on
	LakeForeign     Code = "RBT5003" // data in a node's place that no run of rbt published there
	LakeNested      Code = "RBT5004" // a lake inside another lake
	SchemaDrift     Code = "RBT5005" // an increment whose columns are not those of the published parts
	StoreType       Code = "RBT5006" // a column of a type that cannot be stored without loss
	DeclaredType    Code = "RBT5007" // a column whose type is not the declared one
	UntypedColumn   Code = "RBT5008" // a column of type NULL
	ColumnNames     Code = "RBT5009" // columns whose names are equal but for case
	ContractBroken  Code = "RBT5010" // an output that has not exactly the declared columns
	IncrementalMove Code = "RBT5011" // an incremental model whose folder changed
	IncrementalBase Code = "RBT5012" // an increment over something that is no longer published
	PublishFault    Code = "RBT5013" // the file system refused a step of a publish
	OwnFolder       Code = "RBT5014" // a folder or file that rbt keeps for itself cannot be made, used or removed
)

// Assertions.
const (
	TestColumn   Code = "RBT6001" // a test on a column that its relation does not have
	TestArgument Code = "RBT6002" // an argument that the test or the column's type cannot take
	TestFailed   Code = "RBT6005" // rows violate a test, and the data was not published
	UnitInput    Code = "RBT6006" // an input that a unit test does not give, or gives in vain
	UnitFixture  Code = "RBT6007" // rows of a unit test that their relation cannot hold
)

// Ingest: the declaration (70xx) and the records (71xx).
const (
	IngestUnknownRecord  Code = "RBT7001" // a record type that is not declared
	IngestNameClash      Code = "RBT7002" // two names that are one after normalising
	IngestReservedName   Code = "RBT7003" // a name that starts with _
	IngestBadName        Code = "RBT7004" // a name that no relation or column can have
	IngestBadType        Code = "RBT7005" // an unknown or unusable type
	IngestBadWord        Code = "RBT7006" // a policy, format or limit that does not exist
	IngestBadPath        Code = "RBT7007" // a path that cannot be followed, or two that overlap
	IngestBadRoot        Code = "RBT7008" // no root, two roots, or a root_by that decides nothing
	IngestBadID          Code = "RBT7009" // an id that cannot be minted
	IngestBadFamily      Code = "RBT7010" // a family that cannot be formed
	IngestBadMetadata    Code = "RBT7011" // metadata or its policy where it has no meaning
	IngestBadMode        Code = "RBT7012" // a setting that append cannot keep
	IngestBadChild       Code = "RBT7013" // a child list of no or of several kinds
	IngestEndless        Code = "RBT7014" // required references that come back to where they start
	IngestBadRecord      Code = "RBT7101" // a record that cannot be loaded, under the policy fail
	IngestTooManyRejects Code = "RBT7102" // more rejects than max_rejects
	IngestConflict       Code = "RBT7103" // other metadata on the same content
	IngestTwoTypes       Code = "RBT7104" // one content id claimed by two members of a family
	IngestDuplicateID    Code = "RBT7105" // one id twice
	IngestCheck          Code = "RBT7106" // a count did not agree; nothing is published
	IngestWorker         Code = "RBT7107" // a defect of rbt while it encoded a record
	IngestStall          Code = "RBT7108" // a worker made no progress
	IngestInput          Code = "RBT7109" // an input file or folder that cannot be opened or read to its end
	IngestChangedSpec    Code = "RBT7110" // append: a declaration that differs from the stored one
	IngestChangedFile    Code = "RBT7111" // append: a loaded file that has changed
)
