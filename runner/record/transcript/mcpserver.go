package transcript

import "slices"

// mcpServer adds a server or updates its state.
func (f *fold) mcpServer(_ Event, d MCPServer) {
	i := slices.IndexFunc(f.view.MCPServers, func(known MCPServer) bool { return known.Name == d.Name })
	if i < 0 {
		f.view.MCPServers = append(f.view.MCPServers, d)
		return
	}
	f.view.MCPServers[i] = f.view.MCPServers[i].UpdatedBy(d)
}

// UpdatedBy returns the server after a later event. Its tools stay the same unless the event lists
// them again.
func (s MCPServer) UpdatedBy(later MCPServer) MCPServer {
	switch {
	case s.Name == "" || later.File != "":
		return later
	case later.State != MCPChanged: // a changed list of tools does not end the server
		s.State, s.Reason, s.Log = later.State, later.Reason, later.Log
	}
	return s
}
