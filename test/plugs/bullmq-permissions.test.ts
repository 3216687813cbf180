/** The permissions that the docs name for queues that are only read. */
import { readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { get } from '../redis/router.js'
import { commandsOf, describeBullmq, nodesOf, observe, scopesOf, startWorld, statusPath } from './bullmq-world.js'

describeBullmq('the documented permissions of relayscope/bullmq', (bullmq) => {
  it('suffice for every answer, and for no write', async () => {
    const docs = await readFile(new URL('../../docs/redis-keys.md', import.meta.url), 'utf8')
    const [, acl = ''] = /```text\n(ACL SETUSER viewer[^`]*)```/.exec(docs) ?? []
    const { server, queue, worker, flows } = await startWorld(bullmq)
    await server.cli(...acl.trim().split(/\s+/))
    await flows().add({
      name: 'whole',
      queueName: 'reports',
      opts: { jobId: 'parent' },
      children: [{ name: 'part', queueName: 'emails', opts: { jobId: 'child', delay: 600_000 } }],
    })
    await queue('emails').add('send', {}, { jobId: 'one' })
    await worker('emails', async () => 'ok', { name: 'w', metrics: { maxDataPoints: 10 } })
    const connection = { host: '127.0.0.1', port: server.port, username: 'viewer', password: 'change-me' }
    const seen = ['emails', 'reports'].map((name) => queue(name, { connection, skipMetasUpdate: true }))
    const errors: unknown[] = []
    const router = observe({ queues: seen }, 60_000, (error) => void errors.push(error))
    expect((await commandsOf(router)).map(({ command_id }) => command_id).sort()).toEqual([
      'emails:child',
      'emails:one',
      'reports:parent',
    ])
    expect((await scopesOf(router)).map(({ scope_id }) => scope_id)).toEqual(['emails', 'reports'])
    expect(await nodesOf(router)).toHaveLength(1)
    expect((await get(router, statusPath('reports', 'parent'))).body.metadata).toEqual({
      waits_for_children: ['emails:child'],
    })
    for (const path of ['/delivery/summary', '/findings', '/sources'])
      expect((await get(router, path)).status).toBe(200)
    expect(errors).toEqual([])
    await expect(seen[0]?.add('more', {})).rejects.toThrow(/can't run this command|NOPERM/)
  })
})
