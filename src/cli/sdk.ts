/** What speaks to agents, which needs a package that only its users install. */
import { UsageError } from './arguments.js'

// Packages that only the users of one command install: how it is said that one of them is not there.

/**
 * The module that `importing` returns. @throws UsageError that names all packages that `command` needs, not only the
 * first missing one.
 */
export async function load<T>(
  name: string,
  { command, packages }: { command: string; packages: readonly string[] },
  importing: () => Promise<T>,
): Promise<T> {
  try {
    return await importing()
  } catch (cause) {
    const all = ['relayscope', ...packages].map((each) => `-p ${each}`).join(' ')
    throw new UsageError(`the package ${name} is not installed. Run: npx ${all} relayscope ${command} …`, {
      cause,
    })
  }
}

export const SDK = '@modelcontextprotocol/server'

/** The handler over streamable HTTP. @throws UsageError without the package. */
export const loadMcp = () =>
  load(SDK, { command: 'observe --mcp', packages: ['redis', SDK] }, () => import('../mcp/mcp.js'))

/** The tools, and the other transport. @throws UsageError without the package. */
export const loadStdio = () =>
  load(SDK, { command: 'mcp', packages: [SDK] }, async () => ({
    ...(await import('../mcp/server.js')),
    ...(await import('@modelcontextprotocol/server/stdio')),
  }))
