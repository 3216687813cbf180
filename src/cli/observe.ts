#!/usr/bin/env node
/**
 * The command `relayscope`: queries a router, shows it in the terminal, or observes a store until it receives a signal.
 */
import { format, inspect } from 'node:util'
import { VERSION } from '../internal/version.js'
import { COMMANDS, HELP, OBSERVE_HELP, readArguments, UsageError } from './arguments.js'
import { startObservation } from './observation.js'
import { print } from './text/table.js'

// For output to leave.
const EXIT_MS = 500

/** Resolves on SIGINT or SIGTERM. */
const untilSignalled = (): Promise<void> =>
  new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve())
  })

async function main(): Promise<number> {
  const [command, ...args] = process.argv.slice(2)
  try {
    const { env, stdin, stdout, stderr } = process
    // Each brings its own along, and none of them the store's client.
    if (command === 'get') return await (await import('./get.js')).get(args, env, stdout, stderr)
    if (command === 'docs') return (await import('./docs.js')).docs(args, stdout, stderr)
    if (command === 'why') return await (await import('./why.js')).why(args, env, stdout, stderr)
    if (command === 'mcp') return await (await import('./mcp.js')).mcp(args, { env, stdin, stdout, stderr })
    if (command === 'status') return await (await import('./status.js')).status(args, env, stdout, stderr)
    if (command === 'diff') return await (await import('./incident/diff.js')).diff(args, env, stdout, stderr)
    if (command === 'remove') {
      const [{ remove }, { createInterface }] = await Promise.all([
        import('./remove.js'),
        import('node:readline/promises'),
      ])
      const ask = async (question: string) => {
        const lines = createInterface({ input: stdin, output: stdout })
        return lines.question(question).finally(() => lines.close())
      }
      return await remove(args, { env, stdout, stderr, ask: stdin.isTTY ? ask : null })
    }
    if (command === 'capture') {
      const { capture } = await import('./incident/capture.js')
      return await capture(args, { env, signalled: untilSignalled() }, stdout, stderr)
    }
    if (command === 'record') {
      const { record } = await import('./incident/record.js')
      return await record(args, { env, signalled: untilSignalled() }, stdout, stderr)
    }
    if (command === 'open')
      return await (await import('./incident/open.js')).open(args, untilSignalled(), stdout, stderr)
    const options = readArguments(process.argv.slice(2), env)
    if (typeof options === 'string') {
      print(stdout, { help: HELP, 'observe help': OBSERVE_HELP, version: VERSION }[options].trimEnd())
      return 0
    }
    const signalled = untilSignalled()
    const started = await Promise.race([startObservation(options, process.env), signalled])
    // A signal arrived before the start: there are no connections to close.
    if (started === undefined) return process.exit(0)
    const { url, dashboard, metrics, mcp, warnings, close } = started
    for (const warning of warnings) print(process.stderr, `relayscope: ${warning}`)
    print(process.stdout, `observing deployment "${options.deployment}" at ${url}`)
    if (dashboard !== null) print(process.stdout, `dashboard: ${dashboard}`)
    if (metrics !== null) print(process.stdout, `metrics (key as a bearer token): ${metrics}`)
    if (mcp !== null) print(process.stdout, `MCP over streamable HTTP: ${mcp}`)
    await signalled
    const { aborted } = await close()
    if (aborted > 0) print(process.stderr, `relayscope: aborted ${aborted} connections that did not close in time`)
    return 0
  } catch (error) {
    print(process.stderr, `relayscope: ${error instanceof Error ? error.message : String(error)}`)
    if (!(error instanceof UsageError)) return command === 'status' ? 2 : 1
    const known = COMMANDS.find((name) => name === command)
    print(process.stderr, `relayscope ${known ? `${known} ` : ''}--help shows its usage`)
    return 2
  }
}

// The reader of the output may close it early: `| head`.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit()
  print(process.stderr, `relayscope: the output cannot be written: ${error.message}`)
  process.exit(1)
})
// What the library and other packages log may repeat what a store answered. Never to stdout, where an agent may read.
for (const name of ['debug', 'error', 'info', 'log', 'warn'] as const)
  console[name] = (...logged: unknown[]) => print(process.stderr, format(...logged))
process.on('uncaughtException', (error) => {
  print(process.stderr, `relayscope: ${inspect(error)}`)
  process.exit(1)
})
process.exitCode = await main()
// Handles that a Redis client leaves open must not keep the process alive.
setTimeout(() => process.exit(), EXIT_MS).unref()
