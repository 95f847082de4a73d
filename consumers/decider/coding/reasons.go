package coding

import "math"

// Codes of reasons: what was done with a coder, and what was not.
const (
	FirstTable          = "FirstTable"    // a coder without a table
	ModelChanged        = "ModelChanged"  // its delays or sizes have changed enough for other thresholds
	PolicyChanged       = "PolicyChanged" // another policy or another cap by the configuration
	Renewed             = "Renewed"       // the table in force, before its time is over
	RolledBack          = "RolledBack"    // the operator's word
	Fitted              = "Fitted"        // the delays that the samples show, with their intervals
	Untold              = "Untold"        // parameters that the samples do not tell: the last fit stands
	InsufficientSamples = "InsufficientSamples"
	Suspect             = "Suspect"     // a window is of other delays: the next one tells
	Shifted             = "Shifted"     // a store has become another one: what came before is forgotten
	NoChange            = "NoChange"    // no threshold has changed enough
	Held                = "Held"        // one has, but the last table is too young
	Priced              = "Priced"      // what a million reads cost
	PriceCapped         = "PriceCapped" // the price of reads allows fewer requests than the cap on them
	FailedTasks         = "FailedTasks" // tasks that failed, which say nothing of the delay
	Unseen              = "Unseen"      // coders of which there is no task yet
	Background          = "Background"  // tasks of no coded request
	Waiting             = "Waiting"     // the backlog, as the coder's queue told
	NoEarlierTable      = "NoEarlierTable"
	Refused             = "Refused"      // everyone who answered has refused this very table
	UnknownStore        = "UnknownStore" // tasks of a store that no configured coder has
	UnknownCoder        = "UnknownCoder" // the queue of a coder that is not configured
	BadRow              = "BadRow"       // rows that cannot be used
	Frozen              = "Frozen"
	Observing           = "Observing" // mode observe
	IncompleteWindow    = "IncompleteWindow"
	PromisesBroken      = "PromisesBroken" // executors don't apply what is decided
)

// codes is the order of reasons in a record.
var codes = []string{
	IncompleteWindow, Observing, Frozen, BadRow, UnknownStore, UnknownCoder, Unseen, FailedTasks, Background, Waiting, InsufficientSamples, Suspect, Shifted, Fitted, Untold, PriceCapped, Priced,
	FirstTable, PolicyChanged, ModelChanged, Renewed, RolledBack, NoChange, Held, NoEarlierTable, Refused, PromisesBroken,
}

// mostScoped is how many reasons of a code stand by themselves; the rest is counted
// together.
const mostScoped = 40

// rounded is v to a millionth: what is decided by and shown, so that the last bits of
// a sum decide nothing.
func rounded(v float64) float64 { return math.Round(v*1e6) / 1e6 }
