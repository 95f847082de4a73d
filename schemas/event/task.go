package event

// The outcomes of chunk tasks (DESIGN §3.1).
const (
	TaskDone      = "done"
	TaskCancelled = "cancelled"
	TaskFailed    = "failed"
)

// IsTask reports whether a row with that outcome is a chunk task: a part of some request
// that has a row of its own. What other logs call an outcome makes no task of a request.
func IsTask(outcome string) bool {
	return outcome == TaskDone || outcome == TaskCancelled || outcome == TaskFailed
}

// Tasks appends to dst, for each value of a column of outcomes by its code, whether its
// rows are chunk tasks; some reports whether any are.
func Tasks(dst []bool, outcomes *Dict) (tasks []bool, some bool) {
	for _, v := range outcomes.Values {
		is := IsTask(v)
		dst, some = append(dst, is), some || is
	}
	return dst, some
}
