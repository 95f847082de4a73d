package control

import "time"

// Kind is one of the four things that are steered.
type Kind string

// The kinds, in the order in which windows that close together are decided.
const (
	Placement Kind = "placement"
	Split     Kind = "split"
	Servers   Kind = "servers"
	Coding    Kind = "coding"
)

// Kinds lists the kinds in that order.
var Kinds = []Kind{Placement, Split, Servers, Coding}

// Mode is how far a kind may go.
type Mode string

// The modes: decide nothing; publish, executors only record; act.
const (
	Observe Mode = "observe"
	Advise  Mode = "advise"
	Act     Mode = "act"
)

// Headers of decision records and commands: where on the bus the inputs of the
// decision ended. They are not part of the body (DESIGN §3.3).
const (
	DecisionSchema = "decision/1"
	CommandSchema  = "command/1"
	OutcomeSchema  = "outcome/1"

	HeaderSchema     = "Penstock-Schema"
	HeaderDecision   = "Penstock-Decision"    // decision id
	HeaderWindowsSeq = "Penstock-Windows-Seq" // per partition, comma separated
	HeaderOutcomes   = "Penstock-Outcomes-Seq"
	HeaderOperator   = "Penstock-Operator-Rev"
	HeaderPart       = "Penstock-Part" // i/n of a decision sent in parts
)

// Window is a window of event time, half open, in UTC.
type Window struct {
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
}

// Reason says why something was done, or was not. Code is typed by the kind's
// policy (OverCapacity, NoRoom, Cooldown, Frozen, …).
type Reason struct {
	Code     string         `json:"code"`
	Scope    string         `json:"scope,omitempty"`
	Owner    string         `json:"owner,omitempty"`
	Count    int64          `json:"count,omitempty"`
	Text     string         `json:"text,omitempty"`
	Evidence map[string]any `json:"evidence,omitempty"`
}

// CommandRef names a command of a decision.
type CommandRef struct {
	Scope string `json:"scope"`
	Epoch uint64 `json:"epoch"`
	Moves int    `json:"moves,omitempty"`
}

// Operator is the operator's switches of a kind at the time of a decision.
type Operator struct {
	Mode     Mode     `json:"mode"`
	Frozen   bool     `json:"frozen,omitempty"`
	Evacuate []string `json:"evacuate,omitempty"`
	// Rollback asks for the inverse of what was decided in windows that ended
	// after this time.
	Rollback *time.Time `json:"rollback,omitempty"`
}

// Decision is the record of a decided window: there is one in every mode.
type Decision struct {
	Version    int          `json:"version"`
	Kind       Kind         `json:"kind"`
	Window     Window       `json:"window"`
	Mode       Mode         `json:"mode"`
	Case       string       `json:"case,omitempty"` // minimal, overhead-first, overhead-continuous
	Reasons    []Reason     `json:"reasons"`
	Commands   []CommandRef `json:"commands"`
	Operator   Operator     `json:"operator"`
	Incomplete bool         `json:"incomplete,omitempty"`
	Policy     string       `json:"policy"` // digest of the policy's configuration
	State      string       `json:"state"`  // digest of the policy's state after it
}

// Command is what executors apply: exactly one payload, that of its kind.
// Tables are idempotent by (kind, scope, epoch); moves by (owner, version).
type Command struct {
	Version    int           `json:"version"`
	Kind       Kind          `json:"kind"`
	Scope      string        `json:"scope"`
	Epoch      uint64        `json:"epoch"`
	Window     Window        `json:"window"`
	Mode       Mode          `json:"mode"`
	TTL        string        `json:"ttl"` // Go duration, from the message's server time
	Reason     Reason        `json:"reason"`
	Supersedes uint64        `json:"supersedes,omitempty"`
	Placement  *Moves        `json:"placement,omitempty"`
	Split      *SplitTable   `json:"split,omitempty"`
	Servers    *ServersTable `json:"servers,omitempty"`
	Coding     *CodingTable  `json:"coding,omitempty"`
}

// Moves is the payload of placement.
type Moves struct {
	Moves []Move `json:"moves"`
}

// MaxMoves is the most moves of one command.
const MaxMoves = 1000

// Move takes an owner's data from one site to another. Version is the owner's
// counter after the move.
type Move struct {
	Owner   string `json:"owner"`
	From    string `json:"from"`
	To      string `json:"to"`
	Version uint64 `json:"version"`
	Bytes   int64  `json:"bytes"`
}

// Status is how a command or a move ended.
type Status string

// The statuses. AlreadyApplied counts and is never published for a move: one
// outcome per (owner, version).
const (
	Done           Status = "done"
	Failed         Status = "failed"
	Refused        Status = "refused"
	Expired        Status = "expired"
	Advised        Status = "advised"
	AlreadyApplied Status = "already-applied"
	// Imported is no answer to a command: it tells deciders where an owner's data
	// is by the operator's word. Scope is the site, Move the owner's version.
	Imported Status = "imported"
)

// NotConcerned is the reason of an outcome Advised by which a target says that a
// table has no row of a link that it carries: it was put nowhere.
const NotConcerned = "not-concerned"

// Outcome is an executor's answer: to a move (Owner and Move set) or to a table
// (Epoch set).
type Outcome struct {
	Version int    `json:"version"`
	Kind    Kind   `json:"kind"`
	Scope   string `json:"scope"`
	Owner   string `json:"owner,omitempty"`
	Move    uint64 `json:"move,omitempty"`
	Epoch   uint64 `json:"epoch,omitempty"`
	Status  Status `json:"status"`
	Reason  string `json:"reason"`
	Target  string `json:"target,omitempty"`
	Bytes   int64  `json:"bytes"`
	TookUS  int64  `json:"took_us"`
	// Pinned, of an imported location: no decision may move the owner.
	Pinned bool `json:"pinned,omitempty"`
	// Failed, of a servers table that failed: the servers that are not as the table wants
	// them. All its others are. Empty: the table as a whole was not applied.
	Failed []string  `json:"failed,omitempty"`
	By     string    `json:"by"`
	At     time.Time `json:"at"`
}

// LocationState is how an owner's data stands at its location.
type LocationState string

// The states of a location.
const (
	Live    LocationState = "live"
	Moving  LocationState = "moving"
	Retired LocationState = "retired"
)

// Location is where an owner's data is: the value of KV locations. Exactly one
// copy is live, the one named here.
type Location struct {
	Site    string        `json:"site"`
	Version uint64        `json:"version"`
	State   LocationState `json:"state"`
	Since   time.Time     `json:"since"`
	// Pinned owners are never moved by a decision.
	Pinned bool `json:"pinned,omitempty"`
}
