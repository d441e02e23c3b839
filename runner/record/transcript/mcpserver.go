package transcript

import "slices"

// mcpServer updates a server's state and keeps its tools.
func (f *fold) mcpServer(_ Event, d MCPServer) {
	i := slices.IndexFunc(f.view.MCPServers, func(known MCPServer) bool { return known.Name == d.Name })
	if i < 0 {
		f.view.MCPServers = append(f.view.MCPServers, d)
		return
	}
	f.view.MCPServers[i] = f.view.MCPServers[i].UpdatedBy(d)
}

// UpdatedBy returns the server's state after a later event and keeps its tools.
func (s MCPServer) UpdatedBy(later MCPServer) MCPServer {
	switch {
	case s.Name == "" || later.File != "":
		return later
	case later.State != MCPChanged: // which ends nothing
		s.State, s.Why, s.Log = later.State, later.Why, later.Log
	}
	return s
}
