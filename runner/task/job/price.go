package job

// DefaultCostUSD is limits.cost_usd where nothing is said of it.
const DefaultCostUSD = 5.0
