import { readFileSync } from 'node:fs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { remove } from '../../src/cli/remove.js'
import { createRedisFacilities } from '../../src/redis/composition/facilities.js'
import { clients, describeRedis, startCluster, startServer } from '../redis/server.js'

/** Runs the command, and returns its exit code and output. */
async function run(args: string[], answer?: string) {
  const [out, err]: string[][] = [[], []]
  const code = await remove(args, {
    env: {},
    stdout: { write: (text: string) => out?.push(text) },
    stderr: { write: (text: string) => err?.push(text) },
    ask: answer === undefined ? null : async () => answer,
  })
  return { code, out: out?.join('') ?? '', err: err?.join('') ?? '' }
}

describeRedis('relayscope remove', () => {
  it.each([
    'node-redis',
    'node-redis cluster',
  ] as const)('deletes one deployment and no other key, over %s', async (kind) => {
    const several = kind === 'node-redis' ? undefined : await startCluster()
    const servers = several?.servers ?? [await startServer()]
    onTestFinished(async () => void (await Promise.all(servers.map((server) => server.stop()))))
    const ports = servers.map(({ port }) => port)
    const { client, close } = await clients[kind](ports)
    onTestFinished(close)
    for (const deploymentId of ['gone', 'gone2']) {
      const facilities = createRedisFacilities({ client, deploymentId, shards: several ? 5 : 1, onError: null })
      for (const user_id of ['ada', 'bob', 'eve', 'zoe'])
        await facilities.dispatcher.dispatch({ user_id, client_id: 'c', command_id: 'x', action: 'a' })
      await facilities.close()
    }
    const keys = async () => (await Promise.all(servers.map(({ cli }) => cli('KEYS', '*')))).join('\n')
    const libraries = async () => (await Promise.all(servers.map(({ cli }) => cli('FUNCTION', 'LIST')))).join('\n')
    const store = ['--redis', `redis://127.0.0.1:${ports[0]}`, '--deployment']
    expect(await run([...store, 'gone'], 'no')).toMatchObject({
      code: 1,
      err: expect.stringContaining('nothing was deleted'),
    })
    expect(await keys()).toContain('{gone:')
    expect(await run([...store, 'gone'], 'gone')).toMatchObject({
      code: 0,
      out: expect.stringMatching(/delivery +\d+/),
    })
    expect(await keys()).not.toContain('{gone:')
    expect(await keys()).toContain('{gone2:')
    expect(await libraries()).toContain('relayscope_')
    expect((await run([...store, 'gone2', '--yes'])).out).toContain('and the function library')
    expect([(await keys()).trim(), (await libraries()).trim()]).toEqual(['', ''])
    expect((await run([...store, 'gone2', '--yes'])).out).toContain('nothing of deployment "gone2"')
  })
})

describeRedis('the documented permissions of relayscope remove', () => {
  it('suffice, and for nothing else', async () => {
    const docs = readFileSync('docs/redis-keys.md', 'utf8')
    const [, acl = ''] = /```text\n(ACL SETUSER remover[^`]*)```/.exec(docs) ?? []
    const server = await startServer()
    onTestFinished(() => server.stop())
    await server.cli(...acl.trim().split(/\s+/))
    const { client, close } = await clients['node-redis']([server.port])
    onTestFinished(close)
    const facilities = createRedisFacilities({ client, deploymentId: 'prod', onError: null })
    await facilities.dispatcher.dispatch({ user_id: 'ada', client_id: 'c', command_id: 'x', action: 'a' })
    await facilities.close()
    await server.cli('SET', 'other', 'x')
    const url = `redis://remover:change-me-three@127.0.0.1:${server.port}`
    const { code, out } = await run(['--redis', url, '--deployment', 'prod', '--yes'])
    expect([code, out]).toEqual([0, expect.stringContaining('and the function library')])
    expect((await server.cli('KEYS', '*')).trim()).toBe('other')
    expect(await server.cli('ACL', 'DRYRUN', 'remover', 'GET', 'relayscope:{prod:0}:x')).toMatch(/no permissions/)
  })
})

describe('the arguments of remove', () => {
  it('requires --yes if the input is not a terminal, and refuses more than options', async () => {
    const store = ['--redis', 'redis://127.0.0.1:1', '--deployment', 'd']
    await expect(run(store)).rejects.toThrow(/--yes/)
    await expect(run([...store, 'x'], 'd')).rejects.toThrow(/options only/)
    await expect(run(['--deployment', 'd', '--yes'])).rejects.toThrow(/--redis/)
    expect((await run(['--help'])).out).toContain('relayscope remove')
  })
})
