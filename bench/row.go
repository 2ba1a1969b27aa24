package main

// A Row is one line of the table: a cell read by its main metric.
type Row struct {
	Cell

	Metric Metric            `json:"metric"` // what Result is of
	Result Spread            `json:"result"`
	Base   string            `json:"base,omitempty"`   // the contender that ratios are taken against
	Ratio  Spread            `json:"ratio,omitzero"`   // of Result to the baseline's
	Detail map[Metric]Spread `json:"detail,omitempty"` // the metrics beside the main one
	Ratios map[Metric]Spread `json:"ratios,omitempty"` // of some of these to the baseline's
}

// details are the metrics shown beside the main one, and compared those of them that
// are shown with their ratio.
var (
	details  = []Metric{Allocs, Scaling, P50, P99, P999, Longest, Late, NotTaken, RedisCPU, OwnCPU}
	compared = []Metric{P99, RedisCPU, OwnCPU}
)

// Rows reads the results as the table shows them: grouped by what was
// measured, the groups in the order in which they were first measured.
func (r *Results) Rows() []Row {
	type group struct {
		store, workload string
		callers         int
	}
	var order []group
	cells := make(map[group][]Cell)
	for _, c := range r.order {
		g := group{c.Store, c.Workload, c.Callers}
		if cells[g] == nil {
			order = append(order, g)
		}
		cells[g] = append(cells[g], c)
	}
	var rows []Row
	for _, g := range order {
		for _, m := range []Metric{Nanos, Rate, Most, Part, Bytes, ByUsage, GCCycle, GCPause} {
			for _, c := range cells[g] {
				if r.shows(c, m) {
					rows = append(rows, r.row(c, m, cells[g]))
				}
			}
		}
	}
	return rows
}

// asksRedis are the stores that are read in decisions a second.
var asksRedis = map[string]bool{redisStore: true, pacedStore: true, batchingStore: true}

// shows reports whether m is a main metric of c.
func (r *Results) shows(c Cell, m Metric) bool {
	if m == Nanos && asksRedis[c.Store] || m == Rate && !asksRedis[c.Store] {
		return false
	}
	return r.Of(c, m).OK
}

// row reads c by m, beside the others of its group.
func (r *Results) row(c Cell, m Metric, group []Cell) Row {
	base := baseline(group)
	row := Row{
		Cell: c, Metric: m, Result: r.Of(c, m), Base: base.Contender, Ratio: r.Ratio(c, base, m),
		Detail: make(map[Metric]Spread), Ratios: make(map[Metric]Spread),
	}
	if m == GCPause {
		row.Ratio = Spread{} // the runtime tells pauses in steps too coarse for it
	}
	for _, d := range details {
		if s := r.Of(c, d); s.OK {
			row.Detail[d] = s
		}
	}
	for _, d := range compared {
		if s := r.Ratio(c, base, d); s.OK {
			row.Ratios[d] = s
		}
	}
	return row
}

// baselines are the contenders that ratios are taken against, in each store: the first
// that is there.
var baselines = map[string][]string{
	memoryStore:   {xTimeRateName, goLimiterName},
	httpStore:     {httprateName},
	gateStore:     {xTimeRateName},
	redisStore:    {redisRateName},
	pacedStore:    {redisRateName},
	batchingStore: {redisRateName},
}

// baseline picks the cell of a group that ratios are taken against: the
// contender which the budgets name.
func baseline(group []Cell) Cell {
	for _, name := range baselines[group[0].Store] {
		for _, c := range group {
			if c.Contender == name {
				return c
			}
		}
	}
	return Cell{}
}
