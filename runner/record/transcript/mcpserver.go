package transcript

import "slices"

// mcpServer notes what became of a server of tools. Which tools it had stays.
func (f *fold) mcpServer(_ Event, d MCPServer) {
	i := slices.IndexFunc(f.view.MCPServers, func(known MCPServer) bool { return known.Name == d.Name })
	if i < 0 {
		f.view.MCPServers = append(f.view.MCPServers, d)
		return
	}
	f.view.MCPServers[i] = f.view.MCPServers[i].Then(d)
}

// Then is what is known of a server after something more became of it. Which tools it had
// stays.
func (s MCPServer) Then(later MCPServer) MCPServer {
	switch {
	case s.Name == "" || later.File != "":
		return later
	case later.State != MCPChanged: // which ends nothing
		s.State, s.Why, s.Log = later.State, later.Why, later.Log
	}
	return s
}
