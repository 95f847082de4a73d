package accesslog

import (
	"math"
	"strings"

	"penstock/schemas/event"
	"penstock/schemas/scalar"
)

// set fills a column from a value that is there. It returns false if the value
// is not of the column's kind.
func (p *Parser) set(r *event.Request, c column, s *source, b []byte) bool {
	switch c {
	case colTime:
		return p.setTime(r, s, b)
	case colClient:
		p.setClient(r, s, b)
	case colRequest:
		p.setRequest(r, b)
	case colMethod:
		p.row.method, p.row.methodOK = true, isToken(b)
		p.row.connect = string(b) == "CONNECT"
		r.Op = event.OpOf(string(b))
	case colTarget:
		p.setTarget(r, b)
	case colStatus:
		var ok bool
		r.Status, ok = parseStatus(b)
		return ok
	case colBytes:
		var ok bool
		r.Bytes, ok = parseCount(b)
		return ok && r.Bytes >= 0 && r.Bytes <= event.MaxRequestBytes
	case colTotal, colWait, colService, colNetwork, colOverdue:
		return p.setSpan(r, c, s, b)
	case colOp:
		return setOp(r, b)
	case colTrace:
		setTrace(r, b)
	case colLat, colLon:
		return setDegrees(r, c, b)
	case colN, colK:
		n, ok := parseCount(b)
		if ok = ok && n > 0 && n <= math.MaxUint8; c == colN {
			r.N = uint8(n)
		} else {
			r.K = uint8(n)
		}
		return ok
	default:
		p.setText(r, c, s, b)
	}
	return true
}

func (p *Parser) setTime(r *event.Request, s *source, b []byte) bool {
	var ok bool
	switch {
	case s.time != nil:
		r.Time, ok = s.time.parse(b, p.opts.Zone)
	case s.common || len(b) == clfLength && b[2] == '/':
		r.Time, ok = parseTime(b)
	default:
		r.Time, ok = parseAnyTime(b, s.unit, p.opts.Zone)
	}
	p.row.start, p.row.timed = s.start, true
	return ok && isTime(r.Time)
}

// setClient makes the user of an address, unless another column names one.
func (p *Parser) setClient(r *event.Request, s *source, b []byte) {
	c := p.client(b, s.port)
	if r.User == "" && !p.row.nobody {
		r.User = c.user
	}
	r.Lat, r.Lon = c.lat, c.lon
}

// setRequest sets op and owner, or marks a request that is none.
func (p *Parser) setRequest(r *event.Request, b []byte) {
	p.row.request = true
	req, ok := parseRequest(b)
	if !ok {
		p.row.bad = true
		return
	}
	r.Op = req.op
	p.setOwner(r, req.path)
}

// setTarget sets the owner, unless the request line had one.
func (p *Parser) setTarget(r *event.Request, b []byte) {
	if p.row.request {
		return
	}
	method := methodGet
	if p.row.connect {
		method = methodConnect
	}
	path, ok := pathOf(b, method)
	p.row.target, p.row.targetOK = true, ok
	if ok {
		p.setOwner(r, path)
	}
}

var methodGet, methodConnect = []byte("GET"), []byte("CONNECT")

func (p *Parser) setOwner(r *event.Request, path []byte) {
	p.owner = ownerOf(p.owner[:0], path, max(p.opts.OwnerDepth, 1))
	if len(p.owner) > 0 {
		r.Owner = p.intern(p.owner)
	}
}

// setSpan sets a time span, in µs.
func (p *Parser) setSpan(r *event.Request, c column, s *source, b []byte) bool {
	us, ok := parseSpan(b, s.unit)
	if !ok {
		return false
	}
	switch c {
	case colTotal:
		p.row.total = us
	case colWait:
		r.Wait = us
	case colService:
		r.Service = us
	case colNetwork:
		r.Network = us
	default:
		r.Overdue = us
	}
	return true
}

// setOp takes read, write, or a method in capitals or small letters.
func setOp(r *event.Request, b []byte) bool {
	word := strings.ToUpper(string(b))
	switch word {
	case "READ":
		r.Op = event.Read
		return true
	case "WRITE":
		r.Op = event.Write
		return true
	}
	var ok bool
	r.Op, ok = MethodOp([]byte(word))
	return ok
}

// setTrace takes a trace id, or the header traceparent. Whatever else a client
// sent is no trace, and no reason to refuse the row.
func setTrace(r *event.Request, b []byte) {
	if len(b) == len("00-")+32+len("-0123456789abcdef-00") && b[2] == '-' && b[35] == '-' {
		b = b[3:35]
	}
	if !scalar.Trace(b, &r.Trace) {
		r.Trace = [16]byte{}
	}
}

func setDegrees(r *event.Request, c column, b []byte) bool {
	v, ok := scalar.Float(b)
	if c == colLat {
		r.Lat = float32(v)
		return ok && math.Abs(v) <= 90
	}
	r.Lon = float32(v)
	return ok && math.Abs(v) <= 180
}

// setText sets a column of text.
func (p *Parser) setText(r *event.Request, c column, s *source, b []byte) {
	switch c {
	case colID:
		r.ID = printable(b) // each is new: not worth keeping
	case colUser:
		if r.User, p.row.nobody = p.intern(b), s.none; s.hash {
			r.User = p.hasher.Text(r.User)
		}
	case colOwner:
		r.Owner, p.row.owner = p.intern(b), true
	case colFromComponent:
		r.FromComponent = p.intern(b)
	case colFromSite:
		r.FromSite = p.intern(b)
	case colToComponent:
		r.ToComponent = p.intern(b)
	case colToSite:
		r.ToSite = p.intern(b)
	case colToServer:
		r.ToServer = p.intern(b)
	case colClass:
		r.Class = p.intern(b)
	default:
		r.Outcome = p.intern(b)
	}
}
