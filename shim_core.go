package headgate

func (r *Request) micros() (int64, error) {
	if err := r.Validate(); err != nil {
		return 0, err
	}
	if r.At.IsZero() {
		return 0, nil
	}
	return r.At.UnixMicro(), nil
}
