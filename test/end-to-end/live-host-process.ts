/** The live host as a child process: what it printed, how to ask it, and how it ends. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { inspect } from 'node:util'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** The program itself: signals go to it. */
export const PROGRAM = [process.execPath, 'examples/live-host/main.mjs']

/** The command of a new user. It builds nothing, because the package has just been built. */
export const NPM_START = ['npm', 'start', '--']

export interface LiveHost {
  child: ChildProcess
  url: string
  diagnostics: string
  key: string
  /** The pasteable questions, as paths relative to the router. */
  questions: string[]
  pids: Record<string, number>
  /** The lines that it printed. */
  printed: string[]
  /** The same, and everything that its page of questions shows. */
  text: string
  /** As `fetch`; an error says whether the host is still there. */
  fetch(request: Request): Promise<Response>
  /** What the router says to `path`, with the key. */
  ask(path: string): Promise<{ status: number; body: never }>
}

/** A new directory for what the host keeps, and how to be rid of it. */
function stateOf(): { args: string[]; forget: () => void } {
  const dir = mkdtempSync(join(tmpdir(), 'relayscope-test-'))
  return { args: ['--state', dir], forget: () => rmSync(dir, { recursive: true, force: true }) }
}

/**
 * Starts the host, and reads what it prints and the page of questions that it names. Its state is deleted with it, unless
 * given. Pass `ignore` to hide its errors where a test breaks what it needs.
 */
export async function startLiveHost(
  args: string[] = [],
  start = PROGRAM,
  complaints: 'inherit' | 'ignore' = 'inherit',
): Promise<LiveHost> {
  const { SERVICE_ADMIN_KEY, ...env } = process.env
  const [command, ...before] = start as [string, ...string[]]
  // On a shared store it keeps no state of its own by default.
  const own = args.includes('--state') || args.includes('--redis') ? undefined : stateOf()
  const child = spawn(command, [...before, ...args, ...(own?.args ?? [])], {
    cwd: ROOT,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let complained = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complained = (complained + text).slice(-4_000)
    if (complaints === 'inherit') process.stderr.write(text)
  })
  if (own) child.on('exit', own.forget)
  const lines: string[] = []
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line)
    if (line.startsWith('dashboard: ')) break
  }
  child.stdout.resume()
  if (!lines.at(-1)?.startsWith('dashboard: ')) throw new Error(`the live host ended early:\n${lines.join('\n')}`)
  const [page = '', fragment = ''] = (lines.find((line) => line.startsWith('questions: ')) ?? '')
    .slice(11)
    .split('#key=')
  const answer = await fetch(`${page}.json`, { headers: { 'x-admin-key': fragment } })
  const { sections } = (await answer.json()) as { sections: { title: string; lines: string[] }[] }
  const shown = sections.flatMap(({ title, lines }) => [title, ...lines.map((line) => `  ${line}`)])
  const text = [...lines, ...shown].join('\n')
  async function fetchHost(request: Request): Promise<Response> {
    try {
      return await fetch(request)
    } catch (error) {
      const state = `the live host: exit code ${child.exitCode}, signal ${child.signalCode}`
      throw new Error(`${request.url}: ${inspect(error)}\n${state}\n${complained}`)
    }
  }
  const found = (pattern: RegExp) => pattern.exec(text)?.[1] ?? ''
  const diagnostics = found(/^diagnostics: (\S+)$/m)
  const key = found(/^admin key: (\S+)$/m)
  const asked = [...text.matchAll(/^ {2}curl -s -H "X-Admin-Key: (\S+)" '(\S+)'$/gm)]
  if (asked.some(([, each, url]) => each !== key || !url?.startsWith(diagnostics)))
    throw new Error('a foreign question')
  return {
    child,
    url: found(/^ {2}node a {2}pid \d+ {2}(\S+)$/m) || new URL(diagnostics).origin,
    diagnostics,
    key,
    printed: lines,
    text,
    questions: asked.map(([, , url]) => (url as string).slice(diagnostics.length)),
    pids: Object.fromEntries(
      [...text.matchAll(/^ {2}\w+\/(\S+) {2}pid (\d+)$/gm)].map(([, id, pid]) => [id, Number(pid)]),
    ),
    fetch: fetchHost,
    async ask(path) {
      const response = await fetchHost(new Request(diagnostics + path, { headers: { 'x-admin-key': key } }))
      return { status: response.status, body: (await response.json()) as never }
    },
  }
}

/** What a page of the host is handed when it opens; `headers` are those that its browser would add. */
export async function askAsPage<T>(
  url: string,
  path: string,
  headers: Record<string, string> = { origin: url },
): Promise<T> {
  const response = await fetch(url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: '{}',
  })
  if (response.status !== 201) throw new Error(`${path} answers ${response.status}`)
  return (await response.json()) as T
}

/** Ends it as Ctrl-C does. @returns its exit code, or the signal that had to end it. */
export async function end({ child }: LiveHost, signal: NodeJS.Signals = 'SIGINT'): Promise<number | NodeJS.Signals> {
  if (child.exitCode !== null || child.signalCode !== null)
    return child.exitCode ?? (child.signalCode as NodeJS.Signals)
  const exited = once(child, 'exit')
  child.kill(signal)
  const [code, by] = (await exited) as [number | null, NodeJS.Signals | null]
  return code ?? (by as NodeJS.Signals)
}

/** Whether a process of this id is there. */
export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** The first answer of `look` that is not `undefined`, asked until `deadlineMs` has passed. */
export async function until<T>(what: string, look: () => Promise<T | undefined>, deadlineMs = 600_000): Promise<T> {
  const end = Date.now() + deadlineMs
  for (;;) {
    const seen = await look()
    if (seen !== undefined) return seen
    if (Date.now() > end) throw new Error(`never seen: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
