package usage

// events finds the data of server-sent events that come byte by byte, in constant memory.
type events struct {
	matched int  // bytes of dataMark at the beginning of the line; -1: it has another one
	begun   bool // the line is not empty
	cr      bool // the byte before was a carriage return, which \n may follow
	mark    int  // bytes of byteOrderMark at the beginning
}

const (
	dataMark      = "data:"
	byteOrderMark = "\ufeff"
)

// next reports whether b is part of data, and whether it ends an event.
func (e *events) next(b byte) (data, end bool) {
	if e.mark < len(byteOrderMark) && b == byteOrderMark[e.mark] {
		e.mark++
		return false, false
	}
	e.mark = len(byteOrderMark)
	data = e.matched == len(dataMark)
	switch {
	case b == '\n' && e.cr: // \r\n is one end
	case b == '\n' || b == '\r':
		end = !e.begun
		e.matched, e.begun = 0, false
	case data:
	case e.matched >= 0 && b == dataMark[e.matched]:
		e.matched, e.begun = e.matched+1, true
	default:
		e.matched, e.begun = -1, true
	}
	e.cr = b == '\r'
	return data, end
}
