package accesslog

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fastjson"

	"penstock/schemas/event"
)

// FieldFate says what became of a field of a line.
type FieldFate struct {
	Field  string `json:"field"`            // as the log has it; empty for a constant of the mapping
	Value  string `json:"value"`            // what stands there
	Column string `json:"column,omitempty"` // that it fills
	Result string `json:"result,omitempty"` // what the row has there
	Why    string `json:"why,omitempty"`    // it fills none
}

// Explanation says what became of a line.
type Explanation struct {
	Fields []FieldFate `json:"fields"`
	// Row is what was read; nil if the line is malformed, or a header.
	Row *event.Request `json:"-"`
	// Fault is why there is no row.
	Fault error `json:"-"`
}

// Explain parses a line as Parse does, and says of each field which column it
// fills and with what, or why none.
func (p *Parser) Explain(line []byte) Explanation {
	var best Explanation
	progress := -1
	for _, v := range p.variants {
		x, n := p.explainVariant(v, line)
		if x.Fault == nil {
			return x
		}
		if n > progress {
			best, progress = x, n
		}
	}
	return best
}

// attempt is what a source of a column came to.
type attempt struct {
	column  column
	source  *source
	value   string
	outcome outcome
}

func (p *Parser) explainVariant(v *variant, line []byte) (Explanation, int) {
	var attempts []attempt
	p.trace = func(c column, s *source, value []byte, out outcome) {
		attempts = append(attempts, attempt{c, s, string(value), out})
	}
	var r event.Request
	n, err := p.parse(v, line, &r)
	p.trace = nil
	x := Explanation{Fault: err}
	if err == nil {
		x.Row = &r
	}
	if v.bound == nil || err == ErrHeader { //nolint:errorlint // Parse returns it bare.
		return x, n
	}
	taken := make(map[string]bool)
	for _, a := range attempts {
		if a.outcome == outcomeAbsent {
			continue
		}
		fate := v.fate(a, taken)
		fate.describe(a, &r)
		if err == nil && (a.outcome == outcomeMissing || a.outcome == outcomeNoMatch) && !filled(attempts, a.column) {
			fate.Why += beneath(a.column, &r)
		}
		x.Fields = append(x.Fields, fate)
	}
	x.Fields = append(x.Fields, v.unused(taken, min(n, len(v.fields)))...)
	if v.shape.kind != shapeJSON {
		v.inLineOrder(x.Fields)
	}
	return x, n
}

// fate names the fields of an attempt and what stands in them.
func (v *variant) fate(a attempt, taken map[string]bool) FieldFate {
	fate := FieldFate{Column: a.column.String()}
	slots, between := []int{a.source.slot}, ""
	switch {
	case len(a.source.sum) > 0:
		slots, between = a.source.sum, " + "
	case a.source.minus >= 0:
		slots, between = append(slots, a.source.minus), " - "
	}
	var names, values []string
	for _, i := range slots {
		if i >= 0 && v.fields[i] != nil {
			names, values = append(names, v.bound.names[i]), append(values, string(v.fields[i]))
			taken[v.bound.names[i]] = true
		}
	}
	fate.Field, fate.Value = strings.Join(names, between), strings.Join(values, between)
	return fate
}

// inLineOrder sorts fields as they stand on the line; constants come last.
func (v *variant) inLineOrder(fields []FieldFate) {
	at := func(f FieldFate) int {
		name, _, _ := strings.Cut(f.Field, " ")
		if i := slices.Index(v.bound.names, name); i >= 0 {
			return i
		}
		return len(v.bound.names)
	}
	slices.SortStableFunc(fields, func(a, b FieldFate) int { return at(a) - at(b) })
}

// describe says what an attempt came to.
func (f *FieldFate) describe(a attempt, r *event.Request) {
	switch a.outcome {
	case outcomeMissing:
		f.Column, f.Why = "", "no value for "+a.column.String()
	case outcomeNoMatch:
		f.Column, f.Why = "", "the mapping finds no value for "+a.column.String()+" in it"
	case outcomeWrong:
		f.Column, f.Why = "", fmt.Sprintf("%q cannot be %s: expected %s", clipped(a.value), a.column, columnExpected[a.column])
	default:
		f.Result = result(r, a.column, a.value)
		if a.source.constant != nil {
			f.Why, f.Value = "the mapping's default", ""
		}
		if a.source.none {
			f.Why, f.Result = "", "no "+a.column.String()
		}
	}
}

// filled reports whether a source had a value for the column.
func filled(attempts []attempt, c column) bool {
	return slices.ContainsFunc(attempts, func(a attempt) bool { return a.column == c && a.outcome == outcomeSet })
}

// beneath says what the row has in a column without a value of its own: of some
// columns it follows from others.
func beneath(c column, r *event.Request) string {
	switch {
	case c == colOwner && r.Owner != "":
		return "; owner=" + r.Owner + " is of the path (none: true leaves it empty)"
	case c == colUser && r.User != "":
		return "; user=" + r.User + " is of the client's address (none: true leaves it empty)"
	case c == colOp:
		return "; op=" + r.Op.String() + " is of the method"
	}
	return ""
}

// unused lists the fields that no column takes.
func (v *variant) unused(taken map[string]bool, n int) []FieldFate {
	var out []FieldFate
	add := func(name string, value string) {
		if !taken[name] {
			taken[name] = true
			out = append(out, FieldFate{Field: name, Value: clipped(value), Why: "no column takes it"})
		}
	}
	if v.shape.kind != shapeJSON {
		for i, name := range v.bound.names[:min(n, len(v.bound.names))] {
			if v.fields[i] != nil {
				add(name, string(v.fields[i]))
			}
		}
		return out
	}
	for i, name := range v.bound.names {
		// Fields that only a later source would have taken.
		if v.fields[i] != nil && n > 0 {
			add(name, string(v.fields[i]))
		}
	}
	if n > 0 {
		v.unusedJSON(taken, add)
	}
	return out
}

// unusedJSON walks over the object that was parsed last.
func (v *variant) unusedJSON(taken map[string]bool, add func(name, value string)) {
	var walk func(prefix string, value *fastjson.Value)
	walk = func(prefix string, value *fastjson.Value) {
		object, err := value.Object()
		if err != nil {
			return
		}
		object.Visit(func(key []byte, inner *fastjson.Value) {
			name := prefix + string(key)
			if inner.Type() == fastjson.TypeObject && !taken[name] {
				walk(name+".", inner)
				return
			}
			text := inner.MarshalTo(nil)
			if inner.Type() == fastjson.TypeString {
				text, _ = inner.StringBytes() // it is a string
			}
			add(name, string(text))
		})
	}
	walk("", v.root)
}

func clipped(s string) string {
	if len(s) > maxGot {
		return s[:maxGot] + "…"
	}
	return s
}

// result is what a row has in the columns that a column of the mapping fills.
func result(r *event.Request, c column, value string) string {
	us := func(name string, v int64) string {
		if v == event.NullInt {
			return ""
		}
		return name + "=" + strconv.FormatInt(v, 10) + " "
	}
	var s string
	switch c {
	case colTime:
		s = "time=" + time.UnixMicro(r.Time).UTC().Format(time.RFC3339Nano)
	case colClient:
		if s = "user=" + r.User; r.User == "" {
			s = "no user"
		}
		if r.HasPlace() {
			s += fmt.Sprintf(" lat=%v lon=%v", r.Lat, r.Lon)
		}
	case colRequest, colMethod, colTarget:
		switch s = "op=" + r.Op.String(); {
		case r.Class == ClassBadRequest:
			s = "class=" + r.Class
		case r.Owner != "":
			s += " owner=" + r.Owner
		}
	case colStatus:
		s = "status=" + strconv.Itoa(int(r.Status))
	case colBytes:
		s = "bytes=" + strconv.FormatInt(r.Bytes, 10)
	case colTotal:
		s = us("wait_us", r.Wait) + us("service_us", r.Service) + us("network_us", r.Network)
	case colWait:
		s = us("wait_us", r.Wait)
	case colService:
		s = us("service_us", r.Service)
	case colNetwork:
		s = us("network_us", r.Network)
	case colOp:
		s = "op=" + r.Op.String()
	case colTrace:
		if s = "no trace id"; r.Trace != [16]byte{} {
			s = fmt.Sprintf("trace=%x", r.Trace)
		}
	case colUser:
		s = "user=" + r.User
	default:
		s = c.String() + "=" + value
	}
	return strings.TrimSpace(s)
}
