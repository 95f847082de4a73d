package event

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// Names of the headers (DESIGN §3, §3.4).
const (
	HeaderSchema    = "Penstock-Schema"
	HeaderEncoding  = "Penstock-Encoding"
	HeaderRun       = "Penstock-Run"
	HeaderSeq       = "Penstock-Seq"
	HeaderRows      = "Penstock-Rows"
	HeaderWatermark = "Penstock-Watermark"
	HeaderMalformed = "Penstock-Malformed"
	HeaderDropped   = "Penstock-Dropped"
	HeaderMark      = "Penstock-Mark"
	HeaderUpto      = "Penstock-Upto"
)

// Encodings of a body besides none, which is Arrow IPC.
const (
	// EncodingS2 is Arrow IPC as one s2 block.
	EncodingS2 = "s2"
	// EncodingJSONL is JSON Lines, a row an object, for requests alone: for those
	// who have no Arrow.
	EncodingJSONL = "jsonl"
)

// What errors say of encodings.
const (
	gaugeEncodings   = "none or s2"
	requestEncodings = "none, s2 or jsonl"
)

// Fields is the shape of message headers; nats.Header converts to it.
type Fields = map[string][]string

// Header is what the headers of a batch say.
type Header struct {
	Schema    string // RequestSchema or GaugeSchema
	Encoding  string // "", EncodingS2 or EncodingJSONL
	Run       string
	Seq       uint64 // 1, 2, 3 … per run and partition
	Rows      int
	Watermark int64 // µs: the run's horizon after the last row
	Malformed int64 // lines dropped since the last batch, on partition 0
	// Dropped tells of sequences that will never come; on a batch or a mark.
	Dropped []Dropped
}

// Dropped is the publisher's own word that the sequences First to Last of a
// run on one partition, with Rows rows between the times From and To (µs),
// were given up. In a header: first-last;rows;from;to, on a mark preceded by
// partition and colon.
type Dropped struct {
	Partition   int // on marks only; on a batch it is the batch's own
	First, Last uint64
	Rows        int64
	From, To    int64
}

// Fields returns the headers of the batch.
func (h *Header) Fields() Fields {
	f := Fields{
		HeaderSchema:    {h.Schema},
		HeaderRun:       {h.Run},
		HeaderSeq:       {strconv.FormatUint(h.Seq, 10)},
		HeaderRows:      {strconv.Itoa(h.Rows)},
		HeaderWatermark: {strconv.FormatInt(h.Watermark, 10)},
	}
	if h.Encoding != "" {
		f[HeaderEncoding] = []string{h.Encoding}
	}
	if h.Malformed > 0 {
		f[HeaderMalformed] = []string{strconv.FormatInt(h.Malformed, 10)}
	}
	for _, d := range h.Dropped {
		f[HeaderDropped] = append(f[HeaderDropped], d.format(false))
	}
	return f
}

// ParseHeader reads the headers of a batch. The error names the header, its
// value and what was expected, and wraps ErrUndecodable.
func ParseHeader(f Fields) (Header, error) {
	h := Header{Schema: first(f, HeaderSchema), Encoding: first(f, HeaderEncoding), Run: first(f, HeaderRun)}
	if h.Schema != RequestSchema && h.Schema != GaugeSchema {
		return Header{}, fmt.Errorf("header %s: got %.60q, expected %s or %s: %w",
			HeaderSchema, h.Schema, RequestSchema, GaugeSchema, ErrSchema)
	}
	if h.Encoding == EncodingJSONL && h.Schema != RequestSchema {
		return Header{}, headerError(HeaderEncoding, h.Encoding, gaugeEncodings)
	}
	if h.Encoding != "" && h.Encoding != EncodingS2 && h.Encoding != EncodingJSONL {
		return Header{}, headerError(HeaderEncoding, h.Encoding, requestEncodings)
	}
	if err := checkRun(h.Run); err != nil {
		return Header{}, err
	}
	p := fieldParser{f: f}
	h.Seq = p.uint(HeaderSeq, 1)
	h.Rows = int(p.int(HeaderRows, 0, MaxRows))
	h.Watermark = p.int(HeaderWatermark, MinTime, MaxTime)
	if first(f, HeaderMalformed) != "" {
		h.Malformed = p.int(HeaderMalformed, 0, 1<<48)
	}
	h.Dropped = p.dropped(false)
	if p.err != nil {
		return Header{}, p.err
	}
	return h, nil
}

// MarkKind says what a mark is for.
type MarkKind string

// The kinds of marks.
const (
	Heartbeat MarkKind = "heartbeat"
	Barrier   MarkKind = "barrier"
	End       MarkKind = "end"
)

// Mark is a small message on events.all.<entry> that carries a run's watermark
// to all partitions: it holds once the named sequences are all there.
type Mark struct {
	Kind      MarkKind
	Run       string
	Watermark int64    // µs
	Upto      []uint64 // last sequence per partition
	Dropped   []Dropped
}

// Fields returns the headers of the mark; its body is empty.
func (m *Mark) Fields() Fields {
	up := make([]string, len(m.Upto))
	for i, u := range m.Upto {
		up[i] = strconv.FormatUint(u, 10)
	}
	f := Fields{
		HeaderSchema:    {MarkSchema},
		HeaderRun:       {m.Run},
		HeaderMark:      {string(m.Kind)},
		HeaderWatermark: {strconv.FormatInt(m.Watermark, 10)},
		HeaderUpto:      {strings.Join(up, ",")},
	}
	for _, d := range m.Dropped {
		f[HeaderDropped] = append(f[HeaderDropped], d.format(true))
	}
	return f
}

// IsMark reports whether the headers are those of a mark.
func IsMark(f Fields) bool { return first(f, HeaderSchema) == MarkSchema }

// ParseMark reads a mark for a bus with the given number of partitions.
func ParseMark(f Fields, partitions int) (Mark, error) {
	if !IsMark(f) {
		return Mark{}, fmt.Errorf("header %s: got %.60q, expected %s: %w",
			HeaderSchema, first(f, HeaderSchema), MarkSchema, ErrSchema)
	}
	m := Mark{Kind: MarkKind(first(f, HeaderMark)), Run: first(f, HeaderRun)}
	if !slices.Contains([]MarkKind{Heartbeat, Barrier, End}, m.Kind) {
		return Mark{}, headerError(HeaderMark, string(m.Kind), "heartbeat, barrier or end")
	}
	if err := checkRun(m.Run); err != nil {
		return Mark{}, err
	}
	p := fieldParser{f: f}
	m.Watermark = p.int(HeaderWatermark, MinTime, MaxTime)
	m.Dropped = p.dropped(true)
	if p.err != nil {
		return Mark{}, p.err
	}
	for i, d := range m.Dropped {
		if d.Partition >= partitions {
			return Mark{}, headerError(HeaderDropped, f[HeaderDropped][i], fmt.Sprintf("a partition below %d", partitions))
		}
	}
	upto := strings.Split(first(f, HeaderUpto), ",")
	if len(upto) != partitions {
		return Mark{}, headerError(HeaderUpto, first(f, HeaderUpto), fmt.Sprintf("%d sequences", partitions))
	}
	for _, s := range upto {
		u, err := strconv.ParseUint(s, 10, 63)
		if err != nil {
			return Mark{}, headerError(HeaderUpto, s, "a sequence")
		}
		m.Upto = append(m.Upto, u)
	}
	return m, nil
}

// Partition returns the partition of a row among p: XXH64 with seed 0 over the
// raw bytes of the owner, else the user, else the trace; 0 if all are absent.
func Partition(owner, user string, trace [16]byte, p int) int {
	var h uint64
	switch {
	case owner != "":
		h = xxhash.Sum64String(owner)
	case user != "":
		h = xxhash.Sum64String(user)
	case trace != [16]byte{}:
		h = xxhash.Sum64(trace[:])
	default:
		return 0
	}
	return int(h % uint64(p))
}
