package serverswitch

func child() bool { return false }
