/** The runtimes of tools/runtimes: where each is, and why it is not there. */
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const dir = fileURLToPath(new URL('../../tools/runtimes/node_modules/', import.meta.url))

export interface Runtime {
  command: string
  /** A named skip on a laptop; never set in CI, where what is absent must fail. */
  missing: string | undefined
}

function runtime(path: string): Runtime {
  const command = `${dir}${path}`
  const absent = !existsSync(command) && process.env.CI !== 'true'
  return { command, missing: absent ? 'npm ci --ignore-scripts --prefix tools/runtimes' : undefined }
}

export const nodes = [22, 24, 26].map((version) => ({ version, ...runtime(`node-${version}/bin/node`) }))
export const deno = runtime('@deno/linux-x64-glibc/deno')
export const bun = runtime('@oven/bun-linux-x64/bin/bun')
export const workerd = runtime('@cloudflare/workerd-linux-64/bin/workerd')
