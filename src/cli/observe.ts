#!/usr/bin/env node
/** The command `relayscope`: reads its arguments, starts the observation, and ends it on a signal. */
import { VERSION } from '../version.js'
import { HELP, readArguments, UsageError } from './arguments.js'
import { startObservation } from './observation.js'

// For output to leave.
const EXIT_MS = 500

async function main(): Promise<number> {
  try {
    const options = readArguments(process.argv.slice(2), process.env)
    if (options === 'help' || options === 'version') {
      process.stdout.write(options === 'help' ? HELP : `${VERSION}\n`)
      return 0
    }
    const signalled = new Promise<void>((resolve) => {
      for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve())
    })
    const started = await Promise.race([startObservation(options, process.env), signalled])
    // Told to end before it began: there is nobody to say goodbye to.
    if (started === undefined) return process.exit(0)
    const { url, dashboard, warnings, close } = started
    for (const warning of warnings) process.stderr.write(`relayscope: ${warning}\n`)
    process.stdout.write(`observing deployment "${options.deployment}" at ${url}\n`)
    if (dashboard !== null) process.stdout.write(`look at it in a browser: ${dashboard}\n`)
    await signalled
    const { cut } = await close()
    if (cut > 0) process.stderr.write(`relayscope: cut off ${cut} connections that did not end\n`)
    return 0
  } catch (error) {
    process.stderr.write(`relayscope: ${error instanceof Error ? error.message : String(error)}\n`)
    if (!(error instanceof UsageError)) return 1
    process.stderr.write('relayscope observe --help says how to call it\n')
    return 2
  }
}

process.exitCode = await main()
// What a client of the store leaves behind must not keep a process that has been told to end.
setTimeout(() => process.exit(), EXIT_MS).unref()
