package replay

import "strings"

// folder returns what a path that is not listed is counted by: its first segment, such as
// "/images/", or if it has only one, its extension, such as "*.php". It is empty if it has neither.
func folder(path string) string {
	if !strings.HasPrefix(path, "/") {
		return ""
	}
	if i := strings.IndexByte(path[1:], '/'); i > 0 {
		return path[:i+2]
	}
	const longest = 8
	if i := strings.LastIndexByte(path, '.'); i > 1 && i < len(path)-1 && len(path)-i <= longest {
		return "*" + path[i:]
	}
	return ""
}

// folders puts groups together by their folder, where at least two are in one. Others are merged
// into rest.
func folders(named []group, rest *group) (all []group) {
	count := map[string]int64{}
	for _, k := range named {
		count[folder(k.name)]++
	}
	index := map[string]int{}
	for _, k := range named {
		name := folder(k.name)
		if name == "" || count[name] < 2 {
			rest.merge(k)
			continue
		}
		i, ok := index[name]
		if !ok {
			i = len(all)
			index[name] = i
			all = append(all, group{name: name, paths: count[name]})
		}
		all[i].merge(k)
	}
	return all
}
