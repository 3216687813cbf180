import type { Plugin as EsbuildPlugin } from 'esbuild'
import type { Plugin as VitePlugin } from 'vite'

/** Returns the JavaScript module that exports the text of a `.lua` file. */
export function luaModule(text: string): string
export const esbuildLua: EsbuildPlugin
export const viteLua: VitePlugin
