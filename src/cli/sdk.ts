/** What speaks to agents, which needs a package that only its users install. */
import { UsageError } from './arguments.js'

async function load<T>(command: string, importing: () => Promise<T>): Promise<T> {
  try {
    return await importing()
  } catch (cause) {
    throw new UsageError(
      `the package @modelcontextprotocol/server is not installed beside relayscope: npx -p relayscope -p @modelcontextprotocol/server relayscope ${command} …`,
      { cause },
    )
  }
}

/** The handler over streamable HTTP. @throws UsageError without the package. */
export const loadMcp = () => load('observe', () => import('../mcp/mcp.js'))

/** The tools, and the other transport. @throws UsageError without the package. */
export const loadStdio = () =>
  load('mcp', async () => ({
    ...(await import('../mcp/stdio.js')),
    ...(await import('@modelcontextprotocol/server/stdio')),
  }))
