/** `relayscope why`, with and without a terminal. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { startNodeServer } from '../../src/adapters/node.js'
import { UsageError } from '../../src/cli/arguments.js'
import { why } from '../../src/cli/why.js'
import { apiKeyAuth, createDiagnosticsRouter } from '../../src/index.js'
import { createMemoryFacilities, memoryComposition } from '../../src/memory/index.js'

const KEY = 'k-1'

async function startRouter(commands: readonly { user_id: string; client_id: string; command_id: string }[]) {
  const facilities = createMemoryFacilities()
  onTestFinished(async () => void (await facilities.close()))
  for (const command of commands) await facilities.dispatcher.dispatch({ ...command, action: 'sync' })
  const router = createDiagnosticsRouter({ ...memoryComposition(facilities), auth: apiKeyAuth(KEY), prefix: '/ops' })
  const server = await startNodeServer(router, { port: 0 })
  onTestFinished(async () => void (await server.close()))
  return `${server.url}/ops`
}

async function call(args: readonly string[], isTTY = false, columns = 80) {
  let [out, err] = ['', '']
  const code = await why(
    args,
    { SERVICE_ADMIN_KEY: KEY },
    { isTTY, columns, write: (text: string) => (out += text) },
    { write: (text: string) => (err += text) },
  )
  return { code, out, err }
}

describe('relayscope why', () => {
  it('finds the command by its id and prints the first broken link to a terminal', async () => {
    const url = await startRouter([
      { user_id: 'ada', client_id: 'tab', command_id: 'c1' },
      { user_id: 'ada', client_id: 'tab', command_id: 'c2' },
    ])
    const { code, out, err } = await call([url, 'c1'], true)
    expect([code, err]).toEqual([0, ''])
    expect(out).toContain('command c1 for client tab of user ada')
    expect(out).toMatch(/^> NO {2}client known /m)
    expect(out.trimEnd().split('\n').at(-1)).toBe('broken at: client known')
  })

  it('breaks its lines at spaces where the terminal ends', async () => {
    const url = await startRouter([{ user_id: 'ada', client_id: 'tab', command_id: 'c1' }])
    const linesIn = async (columns: number) => (await call([url, 'c1'], true, columns)).out.trimEnd().split('\n')
    const narrow = await linesIn(80)
    expect(Math.max(...narrow.map((line) => line.length))).toBeLessThanOrEqual(80)
    const words = (lines: string[]) => lines.join(' ').split(/ +/)
    expect(words(narrow)).toEqual(words(await linesIn(10_000)))
    expect(narrow.some((line) => /^ {24}\S/.test(line))).toBe(true)
  })

  it('prints JSON if the output is not a terminal, and with --json', async () => {
    const url = await startRouter([{ user_id: 'ada', client_id: 'tab', command_id: 'c1' }])
    for (const { out } of [await call([url, 'c1']), await call([url, 'c1', '--json'], true)])
      expect(JSON.parse(out)).toMatchObject({ user_id: 'ada', verdict: { link: 'client_known', holds: false } })
  })

  it('lists the owners if several commands have the id; --user or --client selects one', async () => {
    const url = await startRouter([
      { user_id: 'ada', client_id: 'tab', command_id: 'c1' },
      { user_id: 'bob', client_id: 'tab', command_id: 'c1' },
    ])
    const { code, err } = await call([url, 'c1'])
    expect([code, err]).toEqual([1, expect.stringContaining('--user bob --client tab')])
    const chosen = await call([url, 'c1', '--user', 'bob'])
    expect([chosen.code, JSON.parse(chosen.out).user_id]).toEqual([0, 'bob'])
  })

  it('quotes for a shell what a client has written', async () => {
    const url = await startRouter([
      { user_id: 'x; touch pwned #', client_id: "it's", command_id: 'c1' },
      { user_id: 'ada', client_id: 'tab', command_id: 'c1' },
    ])
    const { err } = await call([url, 'c1'])
    expect(err).toContain(`--user 'x; touch pwned #' --client 'it'\\''s'`)
    expect(err).toContain('--user ada --client tab')
  })

  it('fails if no retained command has the id, but not with --user and --client', async () => {
    const url = await startRouter([])
    const { code, err } = await call([url, 'c1'])
    expect([code, err]).toEqual([1, expect.stringContaining('no retained command has the id c1')])
    const asked = await call([url, 'c1', '--user', 'ada', '--client', 'tab'])
    expect(JSON.parse(asked.out).verdict).toEqual({ link: 'admitted', holds: null })
  })

  it('prints the problem of the router, and refuses wrong arguments', async () => {
    const url = await startRouter([])
    const refused = await call([`${url}/nowhere`, 'c1'])
    expect([refused.code, refused.err]).toEqual([1, expect.stringContaining('404')])
    await expect(call([url])).rejects.toBeInstanceOf(UsageError)
    await expect(call([url, 'c1', 'c2'])).rejects.toBeInstanceOf(UsageError)
    expect((await call(['--help'])).out).toContain('relayscope why')
  })
})
