package accesslog

import (
	"github.com/goccy/go-yaml"

	"penstock/infra/errorkind"
)

// Definition is a format as its file has it: how lines look, and which column
// is filled from which field. docs/logs.md describes it.
type Definition struct {
	// Name is what --format takes; that of the file unless given.
	Name string `yaml:"name"`
	// About says in a sentence what writes such logs.
	About string `yaml:"about"`
	// Like names another format whose columns and checks hold where this one
	// has none of its own. Defaults to the format of the dialect of its lines.
	Like string `yaml:"like"`
	// Generic formats are tried only where no other fits.
	Generic bool `yaml:"generic"`
	// Lines are the shapes that a line may have; the first that fits counts.
	Lines []Shape `yaml:"lines"`
	// Columns says what fills each column: the first source that has a value.
	Columns map[string]Sources `yaml:"columns"`
}

// Shape is one way in which a line is put together: exactly one of the first
// seven says how it is cut into fields.
type Shape struct {
	Text    string `yaml:"text"`    // literals and {fields}
	NGINX   string `yaml:"nginx"`   // a log_format string
	Apache  string `yaml:"apache"`  // a LogFormat string
	HAProxy string `yaml:"haproxy"` // a log-format string
	Envoy   string `yaml:"envoy"`   // a text format string
	Regexp  string `yaml:"regexp"`  // named groups, for what nothing else can cut
	JSON    bool   `yaml:"json"`    // an object; fields are names, or paths with dots
	// Delimited lines have their fields named by a header, or here.
	Delimited *Delimited `yaml:"delimited"`

	// Escape is how bytes are written that could end a field: c (\xNN, \"), json
	// (\u00NN, \"), hash (#NN) or none. Defaults to what the dialect does, c of
	// text, none of regexp and delimited.
	Escape string `yaml:"escape"`
	// More allows columns behind the last one, which are left out.
	More bool `yaml:"more"`
	// Named shapes hold only where the format is named: a log is not recognised
	// by them.
	Named bool `yaml:"named"`
	// Only lists fields that a line of this shape must have, and the regular
	// expression that each must match.
	Only map[string]string `yaml:"only"`
	// Set gives columns a value that lines of this shape always have.
	Set map[string]string `yaml:"set"`
}

// Delimited says how fields are separated and where their names stand.
type Delimited struct {
	// Separator is one byte, or the word tab or space; told from the header if
	// there is none.
	Separator string `yaml:"separator"`
	// Header is what a line begins with that names the fields, such as
	// "#Fields: "; empty is the first line of the file.
	Header string `yaml:"header"`
	// Comment is what lines begin with that hold no row.
	Comment string `yaml:"comment"`
	// Names of the fields where no header has them.
	Names []string `yaml:"names"`
}

// Sources are tried in order; the first that has a value fills the column.
type Sources []Source

// Source says where a value comes from and what becomes of it on the way: a
// field, of a list one part, cut by a regular expression, looked up, calculated.
type Source struct {
	// From names the field; several are tried in order.
	From Fields `yaml:"from"`
	// Minus names a field that is taken off (numbers and time spans).
	Minus string `yaml:"minus"`
	// Sum names fields that are added up, as far as they are there.
	Sum Fields `yaml:"sum"`
	// Pick takes the first or the last of a list with ", ", " : " or ";".
	Pick string `yaml:"pick"`
	// Missing lists values that mean that there is none, besides - and null.
	Missing Fields `yaml:"missing"`
	// Match is a regular expression; the value is what its groups hold, joined,
	// or all that it matched. What does not match has no value.
	Match string `yaml:"match"`
	// Lookup replaces values; "*" stands for any other. Without it a value that
	// is not in the table stays.
	Lookup map[string]string `yaml:"lookup"`
	// Expr calculates the value (expr-lang.org): value is what came this far,
	// field("name") another field or nil, number(x) a number. nil has no value.
	Expr string `yaml:"expr"`
	// Unit of a time, or of a time span: ns, us, ms, s, min. A time without one
	// is told by its magnitude; a time span needs one, or carries it ("12ms").
	Unit string `yaml:"unit"`
	// At says that a time is the request's start, and that total_us is to be
	// added: "start". Defaults to its end.
	At string `yaml:"at"`
	// As reads a time by a strftime pattern.
	As string `yaml:"as"`
	// Port says that an address always has a port behind it.
	Port bool `yaml:"port"`
	// Hash makes a keyed hash of a user's name.
	Hash bool `yaml:"hash"`
	// Default is the value where the field has none.
	Default *string `yaml:"default"`
	// None says that the column stays empty where the field has no value, or
	// that there is no field: for owner and user, which else follow from the path
	// and the client's address. Digests of formats without it must not change.
	None bool `yaml:"none" json:",omitempty"`
}

// Fields is a list of names that may be written as one word.
type Fields []string

// UnmarshalYAML takes a word or a list.
func (n *Fields) UnmarshalYAML(b []byte) error {
	var one string
	if yaml.Unmarshal(b, &one) == nil {
		*n = Fields{one}
		return nil
	}
	var list []string
	if err := yaml.UnmarshalWithOptions(b, &list, yaml.Strict()); err != nil {
		return err
	}
	*n = list
	return nil
}

// UnmarshalYAML takes the name of a field, a source, or a list of both.
func (s *Sources) UnmarshalYAML(b []byte) error {
	var list []yamlSource
	if yaml.Unmarshal(b, new([]any)) == nil {
		if err := yaml.UnmarshalWithOptions(b, &list, yaml.Strict()); err != nil {
			return err
		}
	} else {
		var one yamlSource
		if err := yaml.UnmarshalWithOptions(b, &one, yaml.Strict()); err != nil {
			return err
		}
		list = append(list, one)
	}
	for _, source := range list {
		*s = append(*s, Source(source))
	}
	return nil
}

// yamlSource is a Source that may be written as the name of its field.
type yamlSource Source

// UnmarshalYAML takes a word, a list of words, or the whole.
func (s *yamlSource) UnmarshalYAML(b []byte) error {
	if s.From.UnmarshalYAML(b) == nil {
		return nil
	}
	var whole Source
	if err := yaml.UnmarshalWithOptions(b, &whole, yaml.Strict()); err != nil {
		return err
	}
	*s = yamlSource(whole)
	return nil
}

// Decode reads a format file; name is what it is called if it names itself not.
// Unknown words are faults. The error wraps ErrFormat and says where.
func Decode(b []byte, name string) (*Format, error) {
	return decode(b, name, origin{place: "format " + name})
}

func decode(b []byte, name string, from origin) (*Format, error) {
	var d Definition
	if err := yaml.UnmarshalWithOptions(b, &d, yaml.Strict()); err != nil {
		return nil, errorkind.Errorf(ErrFormat, "%s: %w", from.place, err)
	}
	if d.Name == "" {
		d.Name = name
	}
	return compile(&d, from)
}
