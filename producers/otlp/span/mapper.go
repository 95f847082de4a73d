package span

import (
	"fmt"
	"strconv"
	"strings"

	"penstock/schemas/event"
)

// column is what a mapper finds.
type column uint8

const (
	colComponent column = iota
	colSite
	colServer
	colCallee
	colCaller
	colClass
	colOwner
	colUser
	colStatus
	colRPC
	colMethod
	colKind
	colError
	colRead
	colWrote
	numColumns
)

// slot is one source of a column: the smaller its rank, the better.
type slot struct {
	column column
	rank   int16
	source *Source
	memo   map[string]string // what Match made of values; "" does not apply
}

const (
	noRank  = 1 << 14
	maxMemo = 1 << 12
	// maxTexts bounds the texts that are kept to be used again.
	maxTexts = 1 << 16
)

// found is the best value of each column so far.
type found struct {
	rank  [numColumns]int16
	value [numColumns]string
}

func (f *found) reset() {
	for i := range f.rank {
		f.rank[i], f.value[i] = noRank, ""
	}
}

// Mapper finds in attributes what Rules ask for. Its use: Resource, ResourceAttr
// for each attribute of the resource; then for each of its spans Begin, Attr for
// each attribute, Fill. It is not safe for concurrent use.
type Mapper struct {
	slots          map[string][]slot
	constants      [numColumns]string
	sites          map[string]string
	resource, span found
	texts          map[string]string
}

// NewMapper compiles rules. The error wraps ErrRule.
func NewMapper(r Rules) (*Mapper, error) {
	m := &Mapper{slots: make(map[string][]slot), sites: r.Sites, texts: make(map[string]string)}
	for c, sources := range r.complete() {
		for i := range sources {
			s := &sources[i]
			if s.From == "" && (s.Value == "" || s.Match != nil) {
				return nil, fmt.Errorf("a source without a key and a value: %w", ErrRule)
			}
			if s.From == "" {
				if m.constants[c] == "" {
					m.constants[c] = s.Value
				}
				continue
			}
			l := slot{column: column(c), rank: int16(min(i, noRank-1)), source: s}
			if s.Match != nil {
				l.memo = make(map[string]string)
			}
			m.slots[s.From] = append(m.slots[s.From], l)
		}
	}
	m.resource.reset()
	m.span.reset()
	return m, nil
}

// Wants reports whether an attribute of that key is of use, so that others need
// not be decoded.
func (m *Mapper) Wants(key string) bool { return m.slots[key] != nil }

// Resource begins a resource that has no attributes yet.
func (m *Mapper) Resource() {
	m.resource.reset()
	m.span.reset()
}

// ResourceAttr takes an attribute of the resource.
func (m *Mapper) ResourceAttr(key, value string) { m.attr(&m.resource, key, value) }

// Begin begins a span of the resource.
func (m *Mapper) Begin() { m.span = m.resource }

// Attr takes an attribute of the span.
func (m *Mapper) Attr(key, value string) { m.attr(&m.span, key, value) }

func (m *Mapper) attr(f *found, key, value string) {
	if value == "" {
		return
	}
	for i := range m.slots[key] {
		s := &m.slots[key][i]
		if s.rank > f.rank[s.column] {
			continue
		}
		v := s.apply(value)
		if v == "" || s.column == colComponent && strings.HasPrefix(v, "unknown_service") {
			continue
		}
		f.rank[s.column], f.value[s.column] = s.rank, v
	}
}

func (s *slot) apply(value string) string {
	if s.source.Match == nil {
		return value
	}
	if v, ok := s.memo[value]; ok {
		return v
	}
	v := ""
	if g := s.source.Match.FindStringSubmatch(value); len(g) > 1 {
		v = g[1]
	} else if len(g) == 1 {
		v = g[0]
	}
	if len(s.memo) >= maxMemo {
		clear(s.memo)
	}
	s.memo[strings.Clone(value)] = strings.Clone(v)
	return v
}

// Fill puts what was found into s, whose ids and times are the caller's to set.
// A kind that s has already stays.
func (m *Mapper) Fill(s *Span) {
	s.Component, s.Site, s.Server = m.text(colComponent), m.text(colSite), m.text(colServer)
	if name, ok := m.sites[s.Site]; ok {
		s.Site = name
	}
	s.Class, s.Owner, s.User = m.text(colClass), m.text(colOwner), m.text(colUser)
	if s.Kind == Unspecified {
		s.Kind = ParseKind(m.value(colKind))
	}
	// On either half the other is named by the same attribute.
	if s.Serves() {
		s.Caller = m.text(colCaller)
	} else {
		s.Callee = m.text(colCallee)
	}
	m.outcome(s)
	s.Op = op(m.value(colMethod))
	s.Bytes = min(size(m.value(colRead))+size(m.value(colWrote)), event.MaxRequestBytes)
}

// outcome sets the status: of HTTP, else what stands for gRPC's, else 500 for an
// error without a status.
func (m *Mapper) outcome(s *Span) {
	if n, err := strconv.ParseFloat(m.value(colStatus), 64); err == nil && n >= 100 && n < 1000 {
		s.Status = int32(n)
		return
	}
	if code := m.value(colRPC); code != "" {
		if status, ok := grpcStatus(code); ok {
			s.Status = status
			return
		}
	}
	if e := m.value(colError); s.Status == event.NullStatus && e != "" && e != "false" && e != "OK" && e != "UNSET" {
		s.Status = 500
	}
}

func (m *Mapper) value(c column) string {
	if v := m.span.value[c]; v != "" {
		return v
	}
	return m.constants[c]
}

// text returns a value that outlives the buffer it stands in.
func (m *Mapper) text(c column) string {
	v := m.value(c)
	if v == "" {
		return ""
	}
	if t, ok := m.texts[v]; ok {
		return t
	}
	if len(m.texts) >= maxTexts {
		clear(m.texts)
	}
	t := strings.Clone(v)
	m.texts[t] = t
	return t
}

// op is a read for the methods that are safe, and where there is none.
func op(method string) event.Op {
	switch method {
	case "", "GET", "HEAD", "OPTIONS", "TRACE", "PROPFIND", "REPORT", "SEARCH", "QUERY":
		return event.Read
	}
	return event.Write
}

func size(v string) int64 {
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 0 || n > event.MaxRequestBytes {
		return 0
	}
	return n
}

// grpcCodes are the HTTP statuses that stand for gRPC's codes, by number.
var grpcCodes = [...]struct {
	name   string
	status int32
}{
	{"OK", 200},
	{"CANCELLED", 499},
	{"UNKNOWN", 500},
	{"INVALID_ARGUMENT", 400},
	{"DEADLINE_EXCEEDED", 504},
	{"NOT_FOUND", 404},
	{"ALREADY_EXISTS", 409},
	{"PERMISSION_DENIED", 403},
	{"RESOURCE_EXHAUSTED", 429},
	{"FAILED_PRECONDITION", 400},
	{"ABORTED", 409},
	{"OUT_OF_RANGE", 400},
	{"UNIMPLEMENTED", 501},
	{"INTERNAL", 500},
	{"UNAVAILABLE", 503},
	{"DATA_LOSS", 500},
	{"UNAUTHENTICATED", 401},
}

func grpcStatus(code string) (int32, bool) {
	if n, err := strconv.Atoi(code); err == nil {
		if n < 0 || n >= len(grpcCodes) {
			return 0, false
		}
		return grpcCodes[n].status, true
	}
	for _, c := range grpcCodes {
		if strings.EqualFold(code, c.name) {
			return c.status, true
		}
	}
	return 0, false
}
