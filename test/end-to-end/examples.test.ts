/** Boots the small examples whose code stands in the documents. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const example = (name: string) => fileURLToPath(new URL(`../../examples/${name}.mjs`, import.meta.url))

/** The first line that `child` prints; fails when it ends without one. */
async function firstLine(child: { stdout: Readable }): Promise<string> {
  for await (const line of createInterface({ input: child.stdout })) return line
  throw new Error('it printed nothing')
}

const jsonOf = async (response: Response) => ({ status: response.status, body: await response.json() })

describe('examples/first-look', () => {
  it('serves the user that it has connected, and ends when asked to', async () => {
    const child = spawn(process.execPath, [example('first-look'), '0'], { stdio: ['ignore', 'pipe', 'inherit'] })
    const exited = once(child, 'exit')
    try {
      const { status, body } = await jsonOf(await fetch(await firstLine(child)))
      expect(status).toBe(200)
      expect(body.items).toMatchObject([
        { user_id: 'ada', observed_connections: 1, observed_action_types: ['report_load'] },
      ])
    } finally {
      child.kill('SIGTERM')
    }
    expect(await exited).toEqual([0, null])
  })
})

describe('examples/custom-inspector', () => {
  it('pages through the host’s own map, filtered, without losing an entry', async () => {
    const { createDiagnostics } = await import(example('custom-inspector'))
    const call = (user: string) => ({ user, client: 'laptop', action: 'report_load', startedAt: 0 })
    const diagnostics = createDiagnostics(new Map(['ada', 'bob', 'ada', 'ada'].map((user, i) => [i + 1, call(user)])))
    const seen: string[] = []
    let cursor: string | null = null
    do {
      const query: string = `user_id=ada&limit=2${cursor ? `&cursor=${cursor}` : ''}`
      const { status, body } = await jsonOf(await diagnostics(new Request(`http://localhost/rpc/pending?${query}`)))
      expect(status).toBe(200)
      seen.push(...body.items.map(({ correlation_id }: { correlation_id: string }) => correlation_id))
      cursor = body.next_cursor
    } while (cursor)
    expect(seen).toEqual(['1', '3', '4'])
  })

  it('refuses a cursor that it did not hand out, and knows what is absent', async () => {
    const { createDiagnostics } = await import(example('custom-inspector'))
    const diagnostics = createDiagnostics(new Map())
    const ask = async (path: string) =>
      (await jsonOf(await diagnostics(new Request(`http://localhost${path}`)))).body.code
    expect(await ask('/rpc/pending?cursor=MTIz')).toBe('invalid_cursor')
    expect(await ask('/rpc/pending/7')).toBe('not_found')
    expect(await ask('/connections')).toBe('inspector_absent')
  })
})

describe('examples/fake-world', () => {
  it('answers from its plain data, and says what it has not', async () => {
    const { ask } = await import(example('fake-world'))
    expect(await ask('/workers/available?user_id=ada')).toMatchObject({ items: [{ context_id: 'worker-1' }] })
    expect((await ask('/delivery/nodes')).items).toEqual([])
    expect((await ask('/connections')).code).toBe('inspector_absent')
  })
})
