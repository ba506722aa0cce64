//! All kinds of queries: the one place that knows them, so that a worker can decode what it is sent.
use quietly_engine::query::{
    ClippedGradients, ColumnTree, Combined, ModelGain, Query, SecondMoment, TargetHistogram,
    ValueHistogram, decoded, kind_and_fields,
};
use quietly_glm::ConvexQuery;
use quietly_kan::NetworkQuery;
use quietly_linear::papers::BoundedRows;

/// Decodes the bytes of [`Query::encode`]; none if no query of this build wrote them.
pub fn decode_query(bytes: &[u8]) -> Option<Box<dyn Query>> {
    match kind_and_fields(bytes)? {
        (Combined::KIND, fields) => Some(Box::new(Combined::decode(fields, decode_single)?)),
        _ => decode_single(bytes),
    }
}

/// Decodes a query that is not a combination of others, so that no message nests deeply.
fn decode_single(bytes: &[u8]) -> Option<Box<dyn Query>> {
    let (kind, fields) = kind_and_fields(bytes)?;
    match kind {
        TargetHistogram::KIND => decoded::<TargetHistogram>(fields),
        ValueHistogram::KIND => decoded::<ValueHistogram>(fields),
        ColumnTree::KIND => decoded::<ColumnTree>(fields),
        ModelGain::KIND => decoded::<ModelGain>(fields),
        SecondMoment::KIND => decoded::<SecondMoment>(fields),
        ClippedGradients::KIND => decoded::<ClippedGradients>(fields),
        ConvexQuery::KIND => decoded::<ConvexQuery>(fields),
        BoundedRows::KIND => decoded::<BoundedRows>(fields),
        NetworkQuery::KIND => NetworkQuery::decode(fields),
        _ => None,
    }
}
