export function viewerAssets(): Promise<Record<string, string>>
