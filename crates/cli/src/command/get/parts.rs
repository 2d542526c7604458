//! `--connections`: one file over several connections, in parts.

use http::Uri;
use posthaste_http::client::{Piece, Single, SplitOptions};

use super::output::{Destination, Output};
use super::report::Transfer;
use super::{Means, Problem};
use crate::args::{Connections, Get};
use crate::exit::Failure;
use crate::printer;

/// Refuses what cannot be written in parts before anything is fetched.
pub(super) fn check(args: &Get, destinations: &[Destination]) -> Result<(), Failure> {
    if args.connections.most() > 1 && destinations.contains(&Destination::Stdout) {
        return Err(Failure::usage(
            "with several connections the bytes arrive out of order, but stdout needs them in order",
        )
        .hint("write to a file with -o FILE, or omit --connections"));
    }
    Ok(())
}

/// Fetches one URL over several connections, if that can be.
pub(super) async fn fetch(
    Means { client, disruption, args, progress, .. }: Means<'_>,
    uri: &Uri,
    destination: Destination,
    transfer: &mut Transfer,
) -> Result<(), Problem> {
    let mut output = Output::open(destination).await?;
    output.check_takes_parts()?;
    let options = SplitOptions {
        connections: args.connections.most(),
        is_adaptive: args.connections == Connections::Auto,
        may_be_ungrouped: args.ungrouped,
    };
    let mut download = client.download(uri, &options).await?;
    let connection = client.connections().into_iter().find(|it| it.index == download.connection());
    transfer.begin_in_parts(&download, connection);
    if !download.status().is_success() {
        return Err(Problem::Status(download.status()));
    }
    let mut bar = progress.bar(uri.path(), download.length());
    loop {
        let piece = download.next().await;
        if !matches!(piece, Ok(Some(_))) {
            transfer.split = Some(download.report());
        }
        match piece? {
            Some(Piece::Data { offset, data }) => {
                let count = data.len() as u64;
                transfer.bytes += count;
                bar.advance(count);
                disruption.received(count);
                output.write_at(offset, &data).await?;
            }
            Some(Piece::Restart) => {
                transfer.bytes = 0;
                bar = progress.bar(uri.path(), download.length());
                output.restart()?;
            }
            None => break,
        }
    }
    output.finish().await?;
    if let Some(reason) = download.report().single {
        progress.suspend(|| explain(uri, args.connections, reason));
    }
    Ok(())
}

/// Tells why there was one connection only, unless that is as it should be.
fn explain(uri: &Uri, wanted: Connections, reason: Single) {
    let wanted = match wanted {
        Connections::Auto => "several".to_owned(),
        Connections::Fixed(count) => count.to_string(),
    };
    match reason {
        Single::NotAsked | Single::Small => {}
        Single::Changed => printer::note(format_args!("{uri}: {reason}")),
        Single::NoGroup => printer::note(format_args!(
            "{uri}: fetched over one connection instead of {wanted}: {reason}; --ungrouped uses several anyway"
        )),
        _ => printer::note(format_args!("{uri}: fetched over one connection instead of {wanted}: {reason}")),
    }
}
