/** Bundles the dashboard's page: one script and one style sheet, as texts that the package and the tests build in. */
import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { gzipAsync } from '@gfx/zopfli'
import { build } from 'esbuild'
import { minify } from 'terser'

const sourceOf = (file) => fileURLToPath(new URL(`../src/dashboard/page/${file}`, import.meta.url))
// What is bundled brings its terms along.
const NOTICE = '/*! preact, MIT License, Copyright (c) 2015-present Jason Miller */'

// Names of our own and of Preact: no field of an answer is spelled so, and a browser's own are known.
const OURS = [
  ...[
    'is[A-Z].*',
    'asOf',
    'dueAt',
    'keyOf',
    'markOf',
    'onEvent',
    'onRetry',
    'listeners',
    'asking',
    'answer',
    'address',
  ],
  ...[
    'about',
    'axis',
    'bars',
    'brings',
    'cell',
    'countedBy',
    'etag',
    'follow',
    'glyph',
    'look',
    'notProven',
    'proven',
    'tone',
    'problem',
    'proves',
    'caption',
    'unknowns',
    'samples',
    'stages',
    'stand',
    'trouble',
    'query',
    'columns',
    'filters',
    'lacking',
    'latest',
    'refreshMs',
    'acts',
    'happening',
    'inner',
    'isOff',
    'noun',
    'rowId',
    'wasRefused',
    'stamp',
    'scales',
    'slot',
    'facts',
    'saidOf',
    'draw',
    'lines',
    'legend',
    'share',
    'who',
    'shown',
    'unseen',
    'mark',
    'onDone',
    // Of Preact.
    'debounceRendering',
    'diffed',
    'unmount',
    'vnode',
  ],
  ...['_.+', '(?:getChild|getDerived|getSnapshot|component|shouldComponent)[A-Z].*'],
]

async function bundle(entry, options) {
  const { outputFiles } = await build({
    ...entry,
    bundle: true,
    write: false,
    legalComments: 'none',
    ...options,
  })
  return outputFiles[0].text.trim()
}

/** The page, with what its views have in common first: in this order it compresses better, by 180 bytes. */
function entryOfScript() {
  const files = ['parts', 'charts'].flatMap((folder) =>
    readdirSync(sourceOf(folder))
      .sort()
      .map((file) => `${folder}/${file}`),
  )
  const contents = [...files, 'main.tsx'].map((file) => `import '${sourceOf(file)}'`).join('\n')
  // The package says that a module of which nothing is used may be left out: here each is named for its place.
  const named = (build) => build.onResolve({ filter: /^\// }, ({ path }) => ({ path, sideEffects: true }))
  return { stdin: { contents, resolveDir: sourceOf('.') }, plugins: [{ name: 'order', setup: named }] }
}

async function script() {
  const jsx = { jsx: 'react', jsxFactory: 'h', jsxFragmentFactory: 'Fragment' }
  const text = await bundle(entryOfScript(), {
    format: 'esm',
    minifySyntax: true,
    target: 'es2022',
    // Not the runtime that types are checked with: calls of `h` are shorter, by a twentieth of the script.
    tsconfigRaw: { compilerOptions: jsx },
    inject: [sourceOf('jsx.ts')],
  })
  const { code } = await minify(text, {
    module: true,
    ecma: 2020,
    compress: { passes: 4, pure_getters: true, unsafe_arrows: true, unsafe: true, inline: 2 },
    // Some are names of the browser's too, which the page does not use.
    mangle: {
      properties: { regex: new RegExp(`^(?:${OURS.join('|')})$`), builtins: true, reserved: ['isArray', 'isNaN'] },
    },
    format: { preamble: NOTICE },
  })
  return code
}

/** In the format of gzip, a thirtieth smaller than zlib makes it, for half a second of a build. */
const compressed = async (text) =>
  JSON.stringify(Buffer.from(await gzipAsync(Buffer.from(text), {})).toString('base64'))

/** The constants of `src/dashboard/dashboard.ts`, as a bundler defines them. Takes a second. */
export async function dashboardAssets() {
  const [js, css] = await Promise.all([script(), bundle({ entryPoints: [sourceOf('page.css')] }, { minify: true })])
  // Texts and not one object, which a bundler would put where every entry finds it.
  return {
    RELAYSCOPE_DASHBOARD_SCRIPT: await compressed(js),
    RELAYSCOPE_DASHBOARD_STYLE: await compressed(css),
  }
}
