/** What speaks to agents, which needs a package that only its users install. */
import { load } from './packages.js'

export const SDK = '@modelcontextprotocol/server'

/** The handler over streamable HTTP. @throws UsageError without the package. */
export const loadMcp = () =>
  load(SDK, { command: 'observe --mcp', packages: ['redis', SDK] }, () => import('../mcp/mcp.js'))

/** The tools, and the other transport. @throws UsageError without the package. */
export const loadStdio = () =>
  load(SDK, { command: 'mcp', packages: [SDK] }, async () => ({
    ...(await import('../mcp/stdio.js')),
    ...(await import('@modelcontextprotocol/server/stdio')),
  }))
