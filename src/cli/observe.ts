#!/usr/bin/env node
/** The command `relayscope`: asks a router, shows it in the terminal, or observes a store until it is told to end. */
import { VERSION } from '../version.js'
import { COMMANDS, HELP, OBSERVE_HELP, readArguments, UsageError } from './arguments.js'
import { startObservation } from './observation.js'

// For output to leave.
const EXIT_MS = 500

async function main(): Promise<number> {
  const [command, ...args] = process.argv.slice(2)
  try {
    const { env, stdin, stdout, stderr } = process
    // Each brings its own along, and none of them the store's client.
    if (command === 'get') return await (await import('./get.js')).get(args, env, stdout, stderr)
    if (command === 'mcp') return await (await import('./mcp.js')).mcp(args, { env, stdin, stdout, stderr })
    if (command === 'top') return await (await import('./top/top.js')).top(args, { env, stdin, stdout, stderr })
    const options = readArguments(process.argv.slice(2), env)
    if (typeof options === 'string') {
      stdout.write({ help: HELP, 'observe help': OBSERVE_HELP, version: `${VERSION}\n` }[options])
      return 0
    }
    const signalled = new Promise<void>((resolve) => {
      for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve())
    })
    const started = await Promise.race([startObservation(options, process.env), signalled])
    // Told to end before it began: there is nobody to say goodbye to.
    if (started === undefined) return process.exit(0)
    const { url, dashboard, metrics, mcp, warnings, close } = started
    for (const warning of warnings) process.stderr.write(`relayscope: ${warning}\n`)
    process.stdout.write(`observing deployment "${options.deployment}" at ${url}\n`)
    if (dashboard !== null) process.stdout.write(`look at it in a browser: ${dashboard}\n`)
    if (metrics !== null) process.stdout.write(`scrape it, the key as a bearer token: ${metrics}\n`)
    if (mcp !== null) process.stdout.write(`let an agent look, over streamable HTTP: ${mcp}\n`)
    await signalled
    const { cut } = await close()
    if (cut > 0) process.stderr.write(`relayscope: cut off ${cut} connections that did not end\n`)
    return 0
  } catch (error) {
    process.stderr.write(`relayscope: ${error instanceof Error ? error.message : String(error)}\n`)
    if (!(error instanceof UsageError)) return 1
    const known = COMMANDS.find((name) => name === command)
    process.stderr.write(`relayscope ${known ? `${known} ` : ''}--help says how to call it\n`)
    return 2
  }
}

// Whoever reads the output may have read enough: `| head`.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit()
  process.stderr.write(`relayscope: the output cannot be written: ${error.message}\n`)
  process.exit(1)
})
process.exitCode = await main()
// What a client of the store leaves behind must not keep a process that has been told to end.
setTimeout(() => process.exit(), EXIT_MS).unref()
