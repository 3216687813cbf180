/** `relayscope top`: the state of a relay in a terminal, asked again every two seconds. */
import { emitKeypressEvents } from 'node:readline'
import { parse, UsageError } from '../arguments.js'
import { createReader, type Reader, readKey, readTarget } from '../reader/reader.js'
import { columnsOf, print, rowsOf } from '../text/table.js'
import { COLOURS, type Frame, frameOf, NO_COLOURS, PLAIN } from './frame.js'
import { handleKey, initialState, type Key, type TopState, tableOfState, withResult } from './state.js'
import { HEADER_ROUTES } from './tables.js'

// The terminal while `top` has it: another screen, one write per frame, and as it was before on every way out.

// Lines do not wrap: a terminal may draw what clients wrote wider than it is counted here.
const ENTER = '\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J'
const LEAVE = '\x1b[?7h\x1b[?25h\x1b[?1049l'
// A terminal that knows it shows a frame as a whole.
const [BEGIN, END] = ['\x1b[?2026h', '\x1b[?2026l']

export interface Terminal {
  readonly columns?: number
  readonly rows?: number
  write(text: string): unknown
}

export interface Screen {
  draw(lines: readonly string[]): void
  /** Gives the terminal back; the second time nothing. */
  leave(): void
}

export function openScreen(terminal: Terminal): Screen {
  let isOpen = true
  let drawn = ''
  terminal.write(ENTER)
  return {
    draw(lines) {
      // No line break behind the last: it would scroll.
      const frame = `${BEGIN}\x1b[H${lines.map((line) => `${line}\x1b[K`).join('\r\n')}\x1b[J${END}`
      if (!isOpen || frame === drawn) return
      drawn = frame
      terminal.write(frame)
    },
    leave() {
      if (!isOpen) return
      isOpen = false
      terminal.write(LEAVE)
    },
  }
}

export const TOP_HELP = `relayscope top: the state of a relay in the terminal

  npx relayscope top http://127.0.0.1:8080/ops/diagnostics

  --once           prints one frame and ends
  --key-file FILE  the admin key (default SERVICE_ADMIN_KEY)

Keys: ? lists them. Exit codes: 0 ended; 1 with --once: refused or unreachable; 2 wrong usage.
`

const EVERY_MS = 2_000
const SECOND_MS = 1_000

const OPTIONS = {
  once: { type: 'boolean', default: false },
  'key-file': { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const

/** What is asked for a frame. */
const routesOf = (state: TopState) => [...new Set([...HEADER_ROUTES, tableOfState(state).route])]

interface Io {
  readonly env: Record<string, string | undefined>
  readonly stdin: NodeJS.ReadStream
  readonly stdout: NodeJS.WriteStream
  readonly stderr: NodeJS.WriteStream
}

/** Columns of a frame that goes into a file or a pipe. */
const FILE_COLUMNS = 200

async function once(reader: Reader, { stdout, stderr }: Io): Promise<number> {
  let state = initialState()
  await Promise.all(
    routesOf(state).map(async (route) => {
      const asked = await reader.fetchRoute(route)
      state = withResult(state, route, asked, Date.now())
    }),
  )
  const { problem } = state.known.get('/capabilities') ?? { problem: null }
  if (problem !== null) {
    print(stderr, `relayscope: ${problem}`)
    return 1
  }
  const frame = {
    width: stdout.columns === undefined ? FILE_COLUMNS : columnsOf(stdout),
    height: null,
    paint: PLAIN,
    url: reader.url,
    now: Date.now(),
  }
  print(stdout, frameOf(state, frame).join('\n'))
  return 0
}

/** Runs `top` until the user quits, then restores the terminal. */
function live(reader: Reader, { stdin, stdout, env }: Io): Promise<number> {
  const paint = env.NO_COLOR ? NO_COLOURS : stdout.hasColors?.() === false ? NO_COLOURS : COLOURS
  const screen = openScreen(stdout)
  const ending = new AbortController()
  let state = initialState()
  /** Routes whose answer is awaited. */
  const asking = new Set<string>()

  const frame = (): Frame => ({
    width: columnsOf(stdout),
    height: rowsOf(stdout),
    paint,
    url: reader.url,
    now: Date.now(),
  })
  const draw = () => screen.draw(frameOf(state, frame()))

  async function fetchRoute(route: string): Promise<void> {
    if (asking.has(route)) return
    asking.add(route)
    const asked = await reader.fetchRoute(route, ending.signal)
    asking.delete(route)
    if (ending.signal.aborted) return
    state = withResult(state, route, asked, Date.now())
    draw()
  }
  const fetchAll = () => {
    if (!state.isPaused) for (const route of routesOf(state)) void fetchRoute(route)
  }

  return new Promise((resolve) => {
    const end = () => {
      if (ending.signal.aborted) return
      ending.abort()
      for (const timer of timers) clearInterval(timer)
      process.off('exit', screen.leave)
      for (const name of SIGNALS) process.off(name, end)
      stdout.off('resize', draw)
      stdin.off('keypress', onKey)
      stdin.setRawMode(false)
      stdin.pause()
      screen.leave()
      resolve(0)
    }
    const onKey = (_: string | undefined, key: Key) => {
      const before = state
      const next = handleKey(state, key)
      if (next === null) return end()
      state = next
      if (before.table !== next.table || (before.isPaused && !next.isPaused)) fetchAll()
      draw()
    }
    const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
    const timers = [setInterval(fetchAll, EVERY_MS), setInterval(draw, SECOND_MS)]
    process.on('exit', screen.leave)
    for (const name of SIGNALS) process.on(name, end)
    stdout.on('resize', draw)
    emitKeypressEvents(stdin)
    stdin.setRawMode(true)
    stdin.on('keypress', onKey)
    stdin.on('end', end)
    stdin.resume()
    draw()
    fetchAll()
  })
}

/** @returns the exit code. @throws UsageError for what cannot be shown. */
export async function top(args: readonly string[], io: Io): Promise<number> {
  const { values, positionals } = parse(args, OPTIONS)
  if (values.help) {
    print(io.stdout, TOP_HELP.trimEnd())
    return 0
  }
  if (positionals.length > 1) throw new UsageError('expected one URL')
  const reader = createReader(readTarget(positionals[0]), await readKey(values['key-file'], io.env))
  if (values.once) return once(reader, io)
  if (!io.stdin.isTTY || !io.stdout.isTTY) throw new UsageError('top needs a terminal: --once prints one frame')
  return live(reader, io)
}
