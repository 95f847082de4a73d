package split

// Codes of reasons: what was done with a row, and what was not.
const (
	LowerDelay          = "LowerDelay"    // another share of sites is faster, all calls together
	Overloaded          = "Overloaded"    // a replica gets more than it takes
	HigherErrors        = "HigherErrors"  // a replica fails more often than another
	Failing             = "Failing"       // closest, locality-failover: a replica fails too often
	Nearest             = "Nearest"       // closest, locality-failover: the nearest site with room that does not fail
	Constrained         = "Constrained"   // calls went where a constraint forbids it
	Evacuated           = "Evacuated"     // a site is being emptied
	Expired             = "Expired"       // too few samples for so long that the default is better founded
	Renewed             = "Renewed"       // the table in force, before its time is over
	ProbesChanged       = "ProbesChanged" // only what is probed has changed
	RolledBack          = "RolledBack"    // the operator's word
	InsufficientSamples = "InsufficientSamples"
	NoChange            = "NoChange"      // nothing has changed enough for another plan
	NoImprovement       = "NoImprovement" // rows that are as the plan wants them
	WithinDeadBand      = "WithinDeadBand"
	Cooldown            = "Cooldown"
	UnderWay            = "UnderWay"    // rows whose last table does not show in the traffic yet
	MaxStep             = "MaxStep"     // the rest of the way is for the next windows
	NoSite              = "NoSite"      // rows whose callee may be called nowhere
	NoRoom              = "NoRoom"      // more calls than all replicas of a component take
	CallerSlow          = "CallerSlow"  // the network of all links of one caller has risen at once
	CallCycle           = "CallCycle"   // components that call each other in a circle
	Refused             = "Refused"     // an executor has refused this very table
	Unsolved            = "Unsolved"    // the linear programme had no result, greedy decided
	Unproved            = "Unproved"    // the linear programme is larger than a second
	UnknownSite         = "UnknownSite" // calls from or to a site that is not configured
	BadRow              = "BadRow"      // rows that cannot be used
	TooManyRows         = "TooManyRows" // a table is full
	Observing           = "Observing"   // mode observe
	IncompleteWindow    = "IncompleteWindow"
	PromisesBroken      = "PromisesBroken" // executors don't apply what is decided
)

// codes is the order of reasons in a record.
var codes = []string{
	IncompleteWindow, Observing, BadRow, UnknownSite, CallerSlow, CallCycle, NoRoom, Unsolved, Unproved, NoSite, Constrained, Evacuated, Failing, HigherErrors,
	Overloaded, LowerDelay, Nearest, Expired, RolledBack, Renewed, ProbesChanged, InsufficientSamples, NoChange, NoImprovement, WithinDeadBand, Cooldown, UnderWay, MaxStep,
	Refused, TooManyRows, PromisesBroken,
}

// mostScoped is how many reasons of a code stand by themselves; the rest is
// counted together.
const mostScoped = 20
