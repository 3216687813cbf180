/** The command as a process of its own, built from the sources as they stand. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { dashboardAssets } from '../../tools/dashboard-assets.mjs'
import { esbuildLua } from '../../tools/lua.mjs'

// Below node_modules, so that packages resolve from where they would once installed.
export const COMMAND = fileURLToPath(new URL('../../node_modules/.cache/relayscope/observe.mjs', import.meta.url))

export async function buildCommand(): Promise<void> {
  await build({
    entryPoints: [fileURLToPath(new URL('../../src/cli/observe.ts', import.meta.url))],
    outfile: COMMAND,
    bundle: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
    plugins: [esbuildLua],
    define: { RELAYSCOPE_VERSION: '"0.0.0-test"', ...(await dashboardAssets()) },
  })
}

export interface Ended {
  code: number | null
  out: string
  err: string
}

/** Starts the command, whose input stays open behind `input` and else is at its end; `end` ends that, `ready` resolves with its url once it serves, `ended` when it has exited. */
export function startCommand(args: string[], env: Record<string, string> = {}, input?: string) {
  const child = spawn(process.execPath, [COMMAND, ...args], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  // A process that exits before it has read all its input has read enough.
  child.stdin.on('error', () => {})
  if (input === undefined) child.stdin.end()
  else child.stdin.write(input)
  let [out, err] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    err += text
  })
  const ended = once(child, 'close').then(([code]): Ended => ({ code: code as number | null, out, err }))
  /** Resolves once it has printed `text`. */
  const said = async (text: string): Promise<void> => {
    while (!out.includes(text)) {
      const heard = await Promise.race([once(child.stdout, 'data'), ended])
      if (!Array.isArray(heard)) throw new Error(`ended with ${heard.code}: ${heard.err}`)
    }
  }
  const ready = async (): Promise<string> => {
    await said(' at http')
    return /at (http\S+)/.exec(out)?.[1] as string
  }
  return { ready, said, ended, end: () => child.stdin.end(), signal: (name: NodeJS.Signals) => child.kill(name) }
}
